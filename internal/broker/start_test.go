package broker_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/broker"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

func TestStartOnATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = broker.Start(broker.Config{Listen: l.Addr().String()})
	require.ErrorIs(t, err, broker.ErrAddressInUse)
	require.ErrorContains(t, err, l.Addr().String())
}

func TestStartOnATakenDataDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "start")
	first, err := broker.Start(broker.Config{DataDir: dir})
	require.NoError(t, err)
	_, err = broker.Start(broker.Config{DataDir: dir})
	require.ErrorIs(t, err, broker.ErrDataDirInUse)
	require.ErrorContains(t, err, dir)
	require.NoError(t, first.Close())

	second, err := broker.Start(broker.Config{DataDir: dir})
	require.NoError(t, err, "a closed broker leaves its directory free")
	require.NoError(t, second.Close())
	require.NoError(t, second.Close(), "closing twice does nothing")
}

func TestFailedStartFreesTheDataDirectory(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = broker.Start(broker.Config{Listen: l.Addr().String(), DataDir: dir})
	require.ErrorIs(t, err, broker.ErrAddressInUse)
	brokertest.Start(t, broker.Config{DataDir: dir})
}

func TestStartOnADataDirectoryThatIsAFile(t *testing.T) {
	_, err := broker.Start(broker.Config{DataDir: "/dev/null/x"})
	require.ErrorContains(t, err, "data directory")
}

func TestTopicsAreThereAtStart(t *testing.T) {
	dir := t.TempDir()
	cfg := broker.Config{DataDir: dir, Topics: []broker.Topic{{Name: "a", Partitions: 3}}}
	first, err := broker.Start(cfg)
	require.NoError(t, err)
	require.Len(t, first.Cluster().PartitionInfos("a"), 3)
	require.NoError(t, first.Close())

	cfg.Topics = append(cfg.Topics, broker.Topic{Name: "b", Partitions: 1})
	second, err := broker.Start(cfg)
	require.NoError(t, err)
	require.Len(t, second.Cluster().PartitionInfos("a"), 3)
	require.Len(t, second.Cluster().PartitionInfos("b"), 1)
	require.NoError(t, second.Close())

	cfg.Topics[0].Partitions = 4
	_, err = broker.Start(cfg)
	require.ErrorIs(t, err, broker.ErrPartitions)
	require.ErrorContains(t, err, "topic a has 3 partitions, not 4")
}

func TestValidateReportsEveryFault(t *testing.T) {
	err := broker.Config{
		Listen: "0.0.0.0:9092", Advertise: "x", MinSessionTimeout: -1,
		Topics: []broker.Topic{{Name: "a", Partitions: 1}, {Name: "a", Partitions: 0}},
	}.Validate()
	for _, want := range []string{`advertised address "x"`, "-1ns is negative", `topic "a" with 0 partitions`, `topic "a" is listed twice`} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, broker.Config{Listen: ":9092"}.Validate(), "names no host")
	require.ErrorContains(t, broker.Config{Listen: "9092"}.Validate(), "not host:port")
	require.NoError(t, broker.Config{}.WithDefaults().Validate())
}
