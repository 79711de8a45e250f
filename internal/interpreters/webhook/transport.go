package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/addresses"
)

const (
	dialTimeout  = 10 * time.Second
	idleTimeout  = 90 * time.Second
	maxHeader    = 64 << 10
	servicePort  = 443
	maxTransport = 512 // of what is reported of a fault on the way
)

// Resolver returns where the port of a Service is reached, as host:port.
type Resolver func(ctx context.Context, namespace, name string, port int32) (string, error)

// Services resolves Services of the hub: to their cluster IP or external name,
// or, where there is neither, to the name that they have in their cluster.
func Services(hub client.Reader) Resolver {
	return func(ctx context.Context, namespace, name string, port int32) (string, error) {
		number := strconv.Itoa(int(port))
		var service corev1.Service
		err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return "", fmt.Errorf("read service %s/%s: %w", namespace, name, err)
		case err == nil && service.Spec.Type == corev1.ServiceTypeExternalName && service.Spec.ExternalName != "":
			return net.JoinHostPort(service.Spec.ExternalName, number), nil
		case err == nil && service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone:
			return net.JoinHostPort(service.Spec.ClusterIP, number), nil
		default:
			return net.JoinHostPort(serviceHost(namespace, name), number), nil
		}
	}
}

// serviceHost is the name of a Service in its cluster, which its certificate is
// for.
func serviceHost(namespace, name string) string { return name + "." + namespace + ".svc" }

// connection returns where a webhook is and a client for it alone. A Service
// wins over a URL.
func connection(c *admissionregistrationv1.WebhookClientConfig, o Options) (string, *http.Client, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: addresses.Refuse}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // one call per connection: no HTTP/2
		MaxConnsPerHost:        o.PerHook,
		MaxIdleConnsPerHost:    o.PerHook,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // what is read is what is counted
	}
	if len(c.CABundle) > 0 {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(c.CABundle) {
			return "", nil, errors.New("clientConfig.caBundle holds no certificate")
		}
	}
	at, err := address(c)
	if err != nil {
		return "", nil, err
	}
	if s := c.Service; s != nil {
		transport.TLSClientConfig.ServerName = serviceHost(s.Namespace, s.Name)
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			if o.Resolve == nil {
				return nil, errors.New("services cannot be looked up here")
			}
			to, err := o.Resolve(ctx, s.Namespace, s.Name, ptr.Deref(s.Port, servicePort))
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, to)
		}
	}
	return at, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// address returns the URL that questions are posted to.
func address(c *admissionregistrationv1.WebhookClientConfig) (string, error) {
	if s := c.Service; s != nil {
		if s.Name == "" || s.Namespace == "" {
			return "", errors.New("clientConfig.service has no name or no namespace")
		}
		port := strconv.Itoa(int(ptr.Deref(s.Port, servicePort)))
		u := url.URL{Scheme: "https", Host: net.JoinHostPort(serviceHost(s.Namespace, s.Name), port), Path: ptr.Deref(s.Path, "/")}
		return u.String(), nil
	}
	if c.URL == nil {
		return "", errors.New("clientConfig has neither service nor url")
	}
	u, err := url.Parse(*c.URL)
	switch {
	case err != nil || u.Host == "":
		return "", errors.New("clientConfig.url is no URL with a host")
	case u.Scheme != "https":
		return "", errors.New("clientConfig.url must start with https://: objects are not sent in the clear")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("clientConfig.url must have neither a user, nor a query, nor a fragment")
	}
	return u.String(), nil
}

// exchange posts a question and returns the body of the answer.
func exchange(ctx context.Context, to *http.Client, at string, q *sent) ([]byte, error) {
	body, err := q.encode()
	if err != nil {
		return nil, fmt.Errorf("encode the question: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "flotilla")
	reply, err := to.Do(request)
	if err != nil {
		return nil, onTheWay(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered with status %d", reply.StatusCode)
	}
	out, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read its answer: %w", onTheWay(err))
	case len(out) > maxAnswer:
		return nil, fmt.Errorf("its answer is larger than %d bytes", maxAnswer)
	}
	return out, nil
}

// onTheWay returns a transport's fault without the address, which is long and
// known, and cut.
func onTheWay(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		// Ports of this side differ from call to call.
		err = fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	if text := err.Error(); len(text) > maxTransport {
		return errors.New(short(text))
	}
	return err
}
