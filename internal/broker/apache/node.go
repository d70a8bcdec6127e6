//go:build unix

package apache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// node is one Java process and its directory: node.properties, node.log, data/.
type node struct {
	id, port int
	install  Install
	dir      string
	heap     string

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

func (n *node) addr() string       { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }
func (n *node) properties() string { return filepath.Join(n.dir, "node.properties") }
func (n *node) logFile() string    { return filepath.Join(n.dir, "node.log") }

func (n *node) prepare(properties string) error {
	if err := os.MkdirAll(n.dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(n.properties(), []byte(properties), 0o600)
}

// java is a command line of one of Kafka's main classes.
func (n *node) java(ctx context.Context, heap, class string, args ...string) *exec.Cmd {
	base := []string{
		"-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
		"-Dlog4j2.configurationFile=" + filepath.Join(filepath.Dir(n.dir), "log4j2.properties"),
		"-cp", filepath.Join(n.install.Libs, "*"), class,
	}
	cmd := exec.CommandContext(ctx, n.install.Java, append(base, args...)...)
	cmd.Dir = n.dir
	cmd.SysProcAttr = childAttributes()
	return cmd
}

func (n *node) format(ctx context.Context, clusterID string) error {
	out, err := n.java(ctx, "256m", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", n.properties()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format node %d: %w\n%s", n.id, err, tail(out))
	}
	return nil
}

func (n *node) start() error {
	if n.running() {
		return errors.New("already running")
	}
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := n.java(context.Background(), n.heap, "kafka.Kafka", n.properties())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("java: %w", err)
	}
	n.cmd, n.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) { // ends with the process, which kill and stop wait for
		_ = cmd.Wait()
		close(exited)
	}(n.exited)
	return nil
}

func (n *node) running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// waitReady returns when the node answers requests and names at least that many nodes of its cluster.
func (n *node) waitReady(ctx context.Context, timeout time.Duration, nodes int) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.addr()), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if n.answers(ctx, client, nodes) {
			return nil
		}
		select {
		case <-n.exited:
			return fmt.Errorf("node %d ended while starting:\n%s", n.id, n.logTail())
		case <-ctx.Done():
			return fmt.Errorf("node %d does not answer after %s: %w\n%s", n.id, timeout, ctx.Err(), n.logTail())
		case <-tick.C:
		}
	}
}

func (n *node) answers(ctx context.Context, client *kgo.Client, nodes int) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil || len(resp.Brokers) < nodes {
		return false
	}
	for _, b := range resp.Brokers {
		if int(b.NodeID) == n.id {
			return true
		}
	}
	return false
}

func (n *node) logTail() []byte {
	log, err := os.ReadFile(n.logFile())
	if err != nil {
		return []byte(err.Error())
	}
	return tail(log)
}

func (n *node) signal(s os.Signal) error {
	if !n.running() {
		return errors.New("not running")
	}
	return n.cmd.Process.Signal(s)
}

func (n *node) pause() error  { return n.signal(syscall.SIGSTOP) }
func (n *node) resume() error { return n.signal(syscall.SIGCONT) }

func (n *node) kill() error {
	if err := n.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-n.exited
	return nil
}

// stop waits as long as a controlled shutdown may take, then kills.
func (n *node) stop() error {
	if err := errors.Join(n.resume(), n.signal(syscall.SIGTERM)); err != nil {
		return err
	}
	select {
	case <-n.exited:
		return nil
	case <-time.After(60 * time.Second):
		return errors.Join(errors.New("did not stop within 60s: killed"), n.kill())
	}
}
