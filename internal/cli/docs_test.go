package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/broker/apache"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// document is a page whose marked blocks are run:
//
//	<!-- run -->        the shell block that follows is part of one script
//	<!-- file NAME -->  the block that follows is the content of that file
//	<!-- prints -->     each line of the block that follows is in what the script prints; * is any text
type document struct {
	script, prints []string
	files          map[string]string
}

var block = regexp.MustCompile("(?s)<!-- (run|prints|file ([^ ]+)) -->\n```[a-z]*\n(.*?)```")

func read(t *testing.T, name string) document {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	d := document{files: map[string]string{}}
	for _, m := range block.FindAllStringSubmatch(string(b), -1) {
		switch m[1] {
		case "run":
			d.script = append(d.script, m[3])
		case "prints":
			d.prints = append(d.prints, strings.Split(strings.TrimSpace(m[3]), "\n")...)
		default:
			d.files[m[2]] = m[3]
		}
	}
	return d
}

func TestDocumentsDoWhatTheySay(t *testing.T) {
	tool, repo := filepath.Dir(binary.Path(t)), repository(t)
	for _, name := range []string{"README.md", "docs/first-batch.md", "docs/first-job.md"} {
		t.Run(name, func(t *testing.T) {
			d := read(t, filepath.Join(repo, name))
			require.NotEmpty(t, d.script, "nothing in it is run")
			d.run(t, tool, repo)
		})
	}
}

func repository(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// run executes the script in a folder of its own, on ports of its own.
func (d *document) run(t *testing.T, tool, repo string) {
	dir := t.TempDir()
	bootstrap := free(t)
	if !strings.Contains(strings.Join(d.script, ""), "quiesce dev") {
		bootstrap = ownBroker(t)
	}
	ports := strings.NewReplacer("127.0.0.1:9092", bootstrap, "127.0.0.1:7878", free(t))
	for name, text := range d.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(ports.Replace(text)), 0o600))
	}
	module(t, dir, repo)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script := "set -euo pipefail\ntrap 'kill -- -$$ 2>/dev/null' EXIT\n" + ports.Replace(strings.Join(d.script, "\n")) + "\necho the script has ended\nexit 0\n"
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "PATH="+tool+":"+os.Getenv("PATH"), "GOFLAGS=-mod=mod", "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir,
		ports.Replace("QUIESCE_BROKER_LISTEN=127.0.0.1:9092"), ports.Replace("QUIESCE_LISTEN=127.0.0.1:7878"),
		ports.Replace("QUIESCE_BOOTSTRAP_SERVER=127.0.0.1:9092"), ports.Replace("QUIESCE_SERVER=http://127.0.0.1:7878"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	require.Contains(t, out.String(), "the script has ended", "%v", err)
	for _, line := range d.prints {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), `\*`, ".*")
		require.Regexp(t, "(?m)^"+pattern+"$", out.String())
	}
}

// ownBroker is the broker that a page expects to be there: embedded, or Apache Kafka under make test-kafka.
func ownBroker(t *testing.T) string {
	if brokertest.Real() != "" {
		return brokertest.Cluster(t, apache.Config{}).Bootstrap()
	}
	return brokertest.Embedded(t).Bootstrap()
}

// module makes the folder a Go module that uses this one as it stands here.
func module(t *testing.T, dir, repo string) {
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	require.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/quiesce/quiesce", "module example", 1) +
		fmt.Sprintf("\nrequire github.com/quiesce/quiesce v0.0.0\n\nreplace github.com/quiesce/quiesce => %s\n", repo)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
	sum, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
}

// free is an address on which nothing listens.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
