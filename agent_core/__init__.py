"""The assistant's core: contract, router and graph. Knows no Django, payment or ticket."""
