package join

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/contexts"
)

var (
	// ErrRefused means that a kubeconfig asks for something that is done only
	// where it is allowed. The message has what, and how to go on.
	ErrRefused = errors.New("the cluster's kubeconfig is refused")
	// errRedirect stops redirects, as they would carry credentials to wherever the
	// cluster points.
	errRedirect = errors.New("the cluster answers with a redirect, which is not followed: name the address that it leads to in the kubeconfig")
)

// Allow is what a kubeconfig may ask for beyond what is safe. The zero value
// allows none of it.
type Allow struct {
	// Programs allows it to run programs on this machine to obtain credentials:
	// exec plugins and auth providers.
	Programs bool
	// Insecure allows it not to verify the cluster's certificate; the hub does not
	// verify it either then.
	Insecure bool
}

// Check returns ErrRefused if config asks for something that is not allowed, or
// that the hub could not do. It sends nothing.
func (a Allow) Check(config *rest.Config) error {
	switch {
	case config.ExecProvider != nil && !a.Programs:
		return fmt.Errorf("%w: it runs a program to log in: use one with a token or a certificate, or allow it with --allow-exec", ErrRefused)
	case config.AuthProvider != nil && !a.Programs:
		return fmt.Errorf("%w: it logs in by an auth provider: use one with a token or a certificate, or allow it with --allow-exec", ErrRefused)
	case config.Insecure && !a.Insecure:
		return fmt.Errorf("%w: it does not check the cluster's certificate, so that anybody could take its place: "+
			"put the CA into certificate-authority-data, or allow it with --allow-insecure-tls", ErrRefused)
	}
	_, err := wayOf(config)
	return err
}

// Load reads one context of a kubeconfig file, and checks it. An empty context
// means the current one. Errors: ErrRefused, or that of the file.
func Load(path, context string, a Allow) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", contexts.Explain(loader, context, err))
	}
	config.QPS = -1
	return config, a.Check(config)
}

// Connect returns a client for a member. It sends nothing, and the client follows
// no redirects.
func Connect(config *rest.Config) (client.Client, error) {
	httpClient, err := straight(config)
	if err != nil {
		return nil, err
	}
	member, err := client.New(config, client.Options{Scheme: scheme.New(), HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return member, nil
}

func straight(config *rest.Config) (*http.Client, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", config.Host, err)
	}
	if c == http.DefaultClient { // for a config without any settings
		c = &http.Client{Transport: c.Transport, Timeout: config.Timeout}
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	return c, nil
}

// way is how anybody reaches a member, without credentials.
type way struct {
	config   *rest.Config // without credentials
	endpoint string
	ca       []byte
	proxy    string
}

// wayOf returns the way to the member of a kubeconfig.
func wayOf(config *rest.Config) (*way, error) {
	w := &way{config: rest.AnonymousClientConfig(config)}
	base, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil || base.Host == "":
		return nil, fmt.Errorf("%w: its server is not the address of a cluster", ErrRefused)
	case base.Scheme != "https":
		return nil, fmt.Errorf("%w: its server is not at https://, and tokens are not sent in the clear", ErrRefused)
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("%w: its server is more than https://host:port/path", ErrRefused)
	}
	w.endpoint = base.String()
	if err := rest.LoadTLSFiles(w.config); err != nil {
		return nil, fmt.Errorf("read the CA that the cluster's kubeconfig names: %w", err)
	}
	w.ca = w.config.CAData
	w.proxy, err = proxyOf(config, base)
	return w, err
}

// fallback sets the CA by which the member is verified if the kubeconfig has
// none.
func (w *way) fallback(ca []byte) {
	if len(w.ca) == 0 && !w.config.Insecure {
		w.ca = ca
	}
}

// proxyOf returns the proxy that a kubeconfig names; empty for none.
func proxyOf(config *rest.Config, base *url.URL) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	proxy, err := config.Proxy(&http.Request{URL: base})
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: its proxy-url is not the address of a proxy", ErrRefused)
	case proxy == nil:
		return "", nil
	case proxy.User != nil:
		return "", fmt.Errorf("%w: its proxy-url holds a password, which all who read Clusters would see: "+
			"leave it out, and give the proxy the header Proxy-Authorization by the Cluster's spec.proxyHeader if they may", ErrRefused)
	default:
		return proxy.String(), nil
	}
}

const (
	// acceptance is how long a member may take until it accepts a token or role
	// that it has created.
	acceptance = 5 * time.Second
	acceptPoll = 200 * time.Millisecond
)

// working returns the Secret with an account's token. A token that the member no
// longer accepts is replaced.
func (o *Options) working(ctx context.Context, member side, w *way, account string) (*corev1.Secret, error) {
	secret, err := o.token(ctx, account)
	if err != nil || o.DryRun {
		return secret, err
	}
	w.fallback(secret.Data[corev1.ServiceAccountRootCAKey])
	if err = w.accepts(ctx, secret, min(acceptance, o.TokenTimeout)); !apierrors.IsUnauthorized(err) {
		return secret, err
	}
	if err := member.remove(ctx, secret); err != nil {
		return nil, err
	}
	if err := member.put(ctx, tokenOf(o.Namespace, account)); err != nil {
		return nil, err
	}
	if secret, err = o.token(ctx, account); err != nil {
		return nil, err
	}
	if err = w.accepts(ctx, secret, min(acceptance, o.TokenTimeout)); apierrors.IsUnauthorized(err) {
		return nil, fmt.Errorf("the cluster does not accept the token that it issued for %s/%s: do all its API servers have the same keys for service accounts?", o.Namespace, account)
	}
	return secret, err
}

// accepts returns an Unauthorized error if the member does not accept the token
// within the given time. It does not check what the token may do.
func (w *way) accepts(ctx context.Context, token *corev1.Secret, within time.Duration) error {
	config := rest.CopyConfig(w.config) // as the hub will connect
	config.CAFile, config.CAData = "", w.ca
	config.QPS = -1
	config.BearerToken = string(token.Data[corev1.ServiceAccountTokenKey])
	httpClient, err := straight(config)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	clients, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("set up the connection to %s: %w", config.Host, err)
	}
	var refusal error
	err = wait.PollUntilContextTimeout(ctx, acceptPoll, within, true, func(ctx context.Context) (bool, error) {
		_, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case err == nil || apierrors.IsForbidden(err):
			return true, nil
		case apierrors.IsUnauthorized(err):
			refusal = err
			return false, nil
		default:
			return false, err
		}
	})
	if wait.Interrupted(err) && ctx.Err() == nil && refusal != nil {
		return refusal
	}
	if err != nil {
		return fmt.Errorf("try the token of %s: %w", token.Name, err)
	}
	return nil
}
