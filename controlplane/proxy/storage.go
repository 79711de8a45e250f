package proxy

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Storage serves the sub-resource by a proxy.
type Storage struct{ proxy *Proxy }

var _ rest.Connecter = (*Storage)(nil)

// Storage returns the REST storage that an API server installs as clusters/proxy.
func (p *Proxy) Storage() *Storage { return &Storage{proxy: p} }

// New returns empty options: the sub-resource has no objects.
func (s *Storage) New() runtime.Object { return &clusterv1alpha1.ClusterProxyOptions{} }

// Destroy ends the proxy with the server.
func (s *Storage) Destroy() { s.proxy.Close() }

// ConnectMethods are all methods that a cluster accepts.
func (s *Storage) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions allows a path below the sub-resource.
func (s *Storage) NewConnectOptions() (options runtime.Object, subpath bool, key string) {
	return &clusterv1alpha1.ClusterProxyOptions{}, true, "path"
}

// Connect returns the handler of one request to a cluster. The path is read from
// the request itself: options hold it unescaped.
func (s *Storage) Connect(_ context.Context, cluster string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	return &handler{proxy: s.proxy, cluster: cluster, answer: responder}, nil
}
