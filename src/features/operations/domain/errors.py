from shared.errors import Invalid, NotFound


class JobUnknown(NotFound):
    code = "job_unknown"

    def __str__(self) -> str:
        return "There is no such job. GET /v1/admin/cron lists them."


class CronRunNotFound(NotFound):
    code = "cron_run_not_found"

    def __str__(self) -> str:
        return "This job has no such run."


class SlotNotDue(Invalid):
    code = "slot_not_due"

    def __str__(self) -> str:
        return "A slot lies in the past. Leave it out to run the job now."


class SlotOfDryRun(Invalid):
    code = "slot_of_dry_run"

    def __str__(self) -> str:
        return "A dry run takes nobody's slot. Leave the slot out."
