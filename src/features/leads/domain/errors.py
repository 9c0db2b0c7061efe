from shared.errors import Conflict, NotFound


class LeadNotFound(NotFound):
    code = "lead_not_found"

    def __str__(self) -> str:
        return "The lead does not exist, or it belongs to another account."


class LeadAlreadyExists(Conflict):
    code = "lead_taken"

    def __init__(self, username: str) -> None:
        super().__init__(username)
        self.username = username

    def __str__(self) -> str:
        return (
            f"@{self.username} was analysed again for the same business, which created another lead."
            " Delete that lead before you restore this one."
        )
