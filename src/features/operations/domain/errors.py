from shared.errors import Invalid, NotFound


class JobUnknown(NotFound):
    code = "job_unknown"
    text = "There is no such job. GET /v1/admin/cron lists them."


class CronRunNotFound(NotFound):
    code = "cron_run_not_found"
    text = "This job has no such run."


class SlotNotDue(Invalid):
    code = "slot_not_due"
    text = "A slot must be in the past. Omit it to run the job now."


class SlotOfDryRun(Invalid):
    code = "slot_of_dry_run"
    text = "A dry run has no slot. Omit the slot."
