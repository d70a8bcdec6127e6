package codecs

// Logical names of the topics. A deployment's topics are Prefix + "." + name.
const (
	TopicControl    = "control"
	TopicReportsTx  = "reports-tx"
	TopicStatus     = "status"
	TopicOutcomes   = "outcomes"
	TopicDispatch   = "dispatch"
	TopicManifest   = "manifest"
	TopicUnits      = "units"
	TopicJobs       = "jobs"
	TopicEvents     = "events"
	TopicDeadLetter = "dead-letter"

	GroupController = "controller"
	GroupWorkflow   = "workflow"
	GroupStats      = "stats"
	GroupNotifier   = "notifier"
	GroupDispatcher = "dispatcher"
)

// DefaultPrefix is the deployment name when none is configured.
const DefaultPrefix = "quiesce"

// Topic returns a deployment's topic of that logical name.
func Topic(prefix, name string) string { return prefix + "." + name }

// Group returns a deployment's consumer group of that role.
func Group(prefix, role string) string { return prefix + "." + role }

// Table returns the changelog topic of a deployment's group (the name that goka gives it).
func Table(prefix, role string) string { return Group(prefix, role) + "-table" }

// WorkTopic is the logical name of a queue's topic.
func WorkTopic(queue string) string { return "work." + queue }
