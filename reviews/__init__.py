"""What is asked, of whom, and how it was decided."""
