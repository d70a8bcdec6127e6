package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

// envChild makes the test binary a broker with this data directory, to be killed by a test.
const envChild = "QUIESCE_TEST_BROKER_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envChild); dir != "" {
		b, err := broker.Start(killed(dir))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(b.Bootstrap())
		select {} // until it is killed
	}
	brokertest.Main(m)
}

func killed(dir string) broker.Config {
	return broker.Config{DataDir: dir, Topics: []broker.Topic{
		{Name: "t", Partitions: 1, Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
	}}
}

func TestStateSurvivesKill(t *testing.T) {
	dir, ctx, start := t.TempDir(), context.Background(), time.Now()
	child := exec.Command(os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), envChild+"="+dir), os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	c := brokertest.Client(t, strings.TrimSpace(addr))
	require.NoError(t, c.ProduceSync(ctx, dated("t")...).FirstErr())
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 2, -1)
	require.NoError(t, kadm.NewClient(c).CommitAllOffsets(ctx, "g", offsets))
	_, err = broker.Start(killed(dir))
	require.ErrorIs(t, err, broker.ErrDataDirInUse)
	c.Close()
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	b := brokertest.Start(t, killed(dir))
	requireNow(t, start, read(t, b.Bootstrap(), "t", 4))
	committed, err := kadm.NewClient(brokertest.Client(t, b.Bootstrap())).FetchOffsets(ctx, "g")
	require.NoError(t, err)
	at, _ := committed.Lookup("t", 0)
	require.Equal(t, int64(2), at.At)
}
