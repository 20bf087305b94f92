"""The administration as a whole: who gets where, by role and route."""
