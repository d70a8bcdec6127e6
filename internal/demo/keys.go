package demo

// Names of the stages and topics.
const (
	StageRead   = "read"
	StageParse  = "parse"
	StageDigest = "digest"
	StageReport = "report"

	topicPaths   = "go-index.paths"
	topicFiles   = "go-index.files"
	topicDecls   = "go-index.decls"
	topicDigests = "go-index.digests"
)

// pathKey and digestKey are the keys of the report's rows; they cannot meet.
func pathKey(path string) string     { return "path:" + path }
func digestKey(digest string) string { return "sha256:" + digest }
