"""The sandbox processor: a process of its own with its own books, speaking Stripe's wire format.

Started by `python -m payments.sandbox`; knows nothing of Countersign and needs no Django.
"""
