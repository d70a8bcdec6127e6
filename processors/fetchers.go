package processors

import (
	"errors"
	"sync"

	"github.com/IBM/sarama"
)

// A broker answers the requests of one connection in their order, and a fetch may wait for records: whatever comes
// behind it on its connection waits too. sarama fetches all partitions of a leader with one request, over the connection
// that also carries offset requests. So a partition that is claimed while others are idle would be read only after some
// fetches have timed out, and a partition with a backlog would hold up those beside it. Here each partition has a
// connection of its own to be fetched over.

// newConsumerGroup is sarama's consumer group, with a connection a partition.
func newConsumerGroup(brokers []string, name string, cfg *sarama.Config) (sarama.ConsumerGroup, error) {
	shared, err := sarama.NewClient(brokers, cfg)
	if err != nil {
		return nil, err
	}
	client := &fetchClient{Client: shared, own: map[topicPartition]*fetchConn{}}
	g, err := sarama.NewConsumerGroupFromClient(name, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &ownedGroup{g, client}, nil
}

// ownedGroup closes the client of its group.
type ownedGroup struct {
	sarama.ConsumerGroup
	client *fetchClient
}

// Close implements sarama.ConsumerGroup.
func (g *ownedGroup) Close() error {
	err := g.ConsumerGroup.Close()
	if g.client.Closed() {
		return err
	}
	return errors.Join(err, g.client.Close())
}

type topicPartition struct {
	topic string
	id    int32
}

// fetchConn is a connection to the leader of one partition.
type fetchConn struct {
	*sarama.Broker
	leader int32
}

// fetchClient answers the question for the broker to fetch from.
type fetchClient struct {
	sarama.Client
	mu  sync.Mutex
	own map[topicPartition]*fetchConn
}

// LeaderAndEpoch implements sarama.Client; the consumer asks it before it fetches, again after each error.
func (c *fetchClient) LeaderAndEpoch(topic string, id int32) (*sarama.Broker, int32, error) {
	leader, epoch, err := c.Client.LeaderAndEpoch(topic, id)
	if err != nil {
		return nil, epoch, err
	}
	key := topicPartition{topic, id}
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.own[key]
	if conn == nil || conn.leader != leader.ID() || conn.Addr() != leader.Addr() {
		if conn != nil {
			_ = conn.Close() // of a former leader
		}
		conn = &fetchConn{sarama.NewBroker(leader.Addr()), leader.ID()}
		c.own[key] = conn
	}
	if err := conn.Open(c.Config()); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
		return nil, epoch, err
	}
	return conn.Broker, epoch, nil
}

// Close closes all connections.
func (c *fetchClient) Close() error {
	c.mu.Lock()
	for _, conn := range c.own {
		_ = conn.Close() // it may not be open
	}
	clear(c.own)
	c.mu.Unlock()
	return c.Client.Close()
}
