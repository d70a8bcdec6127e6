package broker

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Errors of Start that a caller can act on.
var (
	ErrAddressInUse = errors.New("address is in use by another process")
	ErrDataDirInUse = errors.New("data directory is in use by another broker")
	ErrPartitions   = errors.New("topic exists with another number of partitions")
)

// Broker is a running embedded broker. Its methods may be called from any goroutine.
type Broker struct {
	cluster   *kfake.Cluster
	bootstrap string
	lock      *dirLock
	closeOnce sync.Once
	closeErr  error
}

// Start runs a broker until Close. The error wraps ErrAddressInUse, ErrDataDirInUse or ErrPartitions where it applies.
func Start(cfg Config) (*Broker, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	b := &Broker{}
	if err := b.start(cfg); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", errors.Join(err, b.Close()))
	}
	return b, nil
}

func (b *Broker) start(cfg Config) (err error) {
	var own string // the address listened on
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID("quiesce-embedded"),
		kfake.GroupMinSessionTimeout(cfg.MinSessionTimeout),
		kfake.ListenFn(listener(cfg, &own)),
		kfake.WithLogger(logger{cfg.Log}),
	}
	if cfg.AppendTime {
		opts = append(opts, kfake.BrokerConfigs(map[string]string{"log.message.timestamp.type": appendTime}))
	}
	if cfg.DataDir != "" {
		if b.lock, err = lockDir(cfg.DataDir); err != nil {
			return err
		}
		opts = append(opts, kfake.DataDir(cfg.DataDir))
	}
	if b.cluster, err = kfake.NewCluster(opts...); err != nil {
		b.cluster = nil
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: %w", cfg.Listen, ErrAddressInUse)
		}
		if cfg.DataDir != "" {
			return fmt.Errorf("start with data directory %s: %w", cfg.DataDir, err)
		}
		return fmt.Errorf("start on %s: %w", cfg.Listen, err)
	}
	b.bootstrap = b.cluster.ListenAddrs()[0]
	offered, err := askVersions(own)
	if err != nil {
		return err
	}
	b.cluster.ControlKey(int16(kmsg.ApiVersions), offered.answer(b.cluster))
	s := &stamper{cluster: b.cluster, now: cfg.Now, byDefault: cfg.AppendTime}
	b.cluster.ControlKey(int16(kmsg.Produce), s.produce)
	return b.createTopics(cfg.Topics)
}

func (b *Broker) createTopics(topics []Topic) error {
	for _, t := range topics {
		err := b.cluster.CreateTopic(t.Name, t.Partitions, t.Configs)
		if errors.Is(err, kerr.TopicAlreadyExists) {
			if n := len(b.cluster.PartitionInfos(t.Name)); n != int(t.Partitions) {
				return fmt.Errorf("topic %s has %d partitions, not %d: %w", t.Name, n, t.Partitions, ErrPartitions)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("create topic %s: %w", t.Name, err)
		}
	}
	return nil
}

// Bootstrap is the host:port that clients connect to.
func (b *Broker) Bootstrap() string { return b.bootstrap }

// Cluster is the broker below, for fault injection in tests. A control function that is added to it sees produce
// requests after they were stamped.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close disconnects all clients, writes the state to the data directory and frees it. Later calls do nothing.
func (b *Broker) Close() error {
	b.closeOnce.Do(func() {
		if b.cluster != nil {
			b.cluster.Close()
		}
		if b.lock != nil {
			b.closeErr = b.lock.release()
		}
	})
	return b.closeErr
}

// listener returns the listen function of kfake: it ignores kfake's own address, notes the one listened on, and tells
// clients the advertised one.
func listener(cfg Config, own *string) func(network, address string) (net.Listener, error) {
	return func(network, _ string) (net.Listener, error) {
		l, err := net.Listen(network, cfg.Listen)
		if err != nil {
			return nil, err
		}
		*own = l.Addr().String()
		if cfg.Advertise == "" {
			return l, nil
		}
		return advertised{l, cfg.Advertise}, nil
	}
}

// advertised is a listener whose address is another one than it listens on. Its own type is its net.Addr.
type advertised struct {
	net.Listener
	addr string
}

func (a advertised) Addr() net.Addr  { return a }
func (a advertised) Network() string { return "tcp" }
func (a advertised) String() string  { return a.addr }
