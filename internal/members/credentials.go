package members

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// ErrCredentials says that a Cluster and its Secret do not say how to connect.
// The message names the field, never its content.
var ErrCredentials = errors.New("the cluster cannot be connected to")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCredentials, fmt.Errorf(format, args...))
}

// TargetOf returns how to connect to a cluster in push mode: its address, proxy
// and identity from its spec, token and caBundle from the Secret that
// spec.secretRef names. Nothing else is looked at: no files, no programs.
func TargetOf(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (Target, error) {
	endpoint, err := url.Parse(cluster.Spec.APIEndpoint)
	if err != nil || endpoint.Host == "" {
		return Target{}, refuse("spec.apiEndpoint is not a URL with a host")
	}
	if endpoint.Scheme != "https" {
		return Target{}, refuse("spec.apiEndpoint must start with https://, a token is not sent in the clear")
	}
	if endpoint.User != nil {
		// Addresses are logged, and stand where many may read them.
		return Target{}, refuse("spec.apiEndpoint holds a user name: credentials belong into the secret")
	}
	token := strings.TrimSpace(string(secret.Data[clusterv1alpha1.SecretTokenKey]))
	if token == "" {
		return Target{}, refuse("secret %s/%s has no %s", secret.Namespace, secret.Name, clusterv1alpha1.SecretTokenKey)
	}
	config := &rest.Config{Host: cluster.Spec.APIEndpoint, BearerToken: token}
	config.ServerName = cluster.Annotations[clusterv1alpha1.TLSServerNameAnnotation]
	if cluster.Spec.InsecureSkipTLSVerification {
		config.Insecure = true
	} else {
		config.CAData = secret.Data[clusterv1alpha1.SecretCADataKey]
	}
	if err := route(config, cluster.Spec.ProxyURL, cluster.Spec.ProxyHeader); err != nil {
		return Target{}, err
	}
	return Target{Name: cluster.Name, ID: cluster.Spec.ID, Config: config, Route: routeOf(cluster)}, nil
}

// routeOf names the way to the cluster, for comparison.
func routeOf(cluster *clusterv1alpha1.Cluster) string {
	parts := []string{cluster.Spec.ProxyURL}
	for _, name := range slices.Sorted(maps.Keys(cluster.Spec.ProxyHeader)) {
		parts = append(parts, name+"="+cluster.Spec.ProxyHeader[name])
	}
	return strings.Join(parts, "\n")
}

// route sends connections through a proxy, and sends it the given headers.
func route(config *rest.Config, proxy string, headers map[string]string) error {
	if proxy == "" {
		return nil
	}
	through, err := url.Parse(proxy)
	if err != nil || through.Host == "" {
		return refuse("spec.proxyURL is not a URL with a host")
	}
	switch through.Scheme {
	case "http", "https", "socks5":
	default:
		return refuse("spec.proxyURL has scheme %q: http, https and socks5 are known", through.Scheme)
	}
	config.Proxy = http.ProxyURL(through)
	if len(headers) == 0 {
		return nil
	}
	sent := http.Header{}
	for name, values := range headers {
		for value := range strings.SplitSeq(values, ",") {
			sent.Add(name, strings.TrimSpace(value))
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if transport, ok := transportBelow(next); ok {
			transport.ProxyConnectHeader = sent
		}
		return next
	})
	return nil
}

// transportBelow finds the transport that opens connections. With a proxy of
// its own a config never shares it with another.
func transportBelow(rt http.RoundTripper) (*http.Transport, bool) {
	for {
		if transport, ok := rt.(*http.Transport); ok {
			return transport, true
		}
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return nil, false
		}
		rt = wrapper.WrappedRoundTripper()
	}
}
