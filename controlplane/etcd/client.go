package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/flotilla-io/flotilla/controlplane/socket"
)

// The keepalive settings of the API server's own client, which detect a dead connection.
const (
	keepAlive        = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// Address has the URLs and TLS files of a store outside this process.
type Address struct {
	// Servers are the store's URLs.
	Servers []string
	// CAFile, CertFile and KeyFile are for stores that use TLS.
	CAFile, CertFile, KeyFile string
}

// AddressIn returns the address of the store that runs in a folder.
func AddressIn(dir string) (Address, error) {
	path, err := socket.Find(dir, socketName)
	if err != nil {
		return Address{}, fmt.Errorf("find the store: %w", err)
	}
	return Address{Servers: []string{socketScheme + path}}, nil
}

// Connect returns a client of a store outside this process. It sends nothing yet.
func Connect(a Address) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints: a.Servers, Logger: zap.NewNop(), DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
	}
	if a.CAFile != "" || a.CertFile != "" || a.KeyFile != "" {
		info := transport.TLSInfo{CertFile: a.CertFile, KeyFile: a.KeyFile, TrustedCAFile: a.CAFile}
		var err error
		if config.TLS, err = info.ClientConfig(); err != nil {
			return nil, fmt.Errorf("connect to the store: %w", err)
		}
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the store: %w", err)
	}
	return client, nil
}

// Place returns a name for the etcd cluster of a client, made from its cluster id. It is the
// same from every member, and different for another cluster.
func Place(ctx context.Context, client *clientv3.Client) (string, error) {
	answer, err := client.Get(ctx, "flotilla.io/place", clientv3.WithCountOnly())
	if err != nil {
		return "", fmt.Errorf("read which etcd it is: %w", err)
	}
	return fmt.Sprintf("etcd_%x", answer.Header.ClusterId), nil
}
