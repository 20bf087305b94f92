"""Reviews: what a person is asked, of whom, decided how. Knows no payment, ticket or run."""
