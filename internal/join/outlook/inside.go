package outlook

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/policies/cascade"
)

// Inside reads what is in a member.
type Inside interface {
	// Missed returns what else would be deleted with an object that is a Namespace
	// or defines a kind; nothing for other objects. What goes anyway, according to
	// leaves, is not counted.
	Missed(ctx context.Context, obj *unstructured.Unstructured, leaves func(schema.GroupKind, metav1.Object) bool) ([]string, error)
	// Claims returns the volume claims in a namespace.
	Claims(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error)
}

// timeout is how long each lookup may take: a cluster that leaves may hang.
const timeout = 20 * time.Second

// member is an Inside that reads from the member itself.
type member struct {
	name    string
	config  *rest.Config
	http    *http.Client
	clients kubernetes.Interface
}

// Member returns an Inside for the member that config leads to; name is the name
// of its cluster.
func Member(name string, config *rest.Config) (Inside, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // some of the kinds that are listed are deprecated
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to cluster %s: %w", name, err)
	}
	clients, err := kubernetes.NewForConfigAndClient(config, over)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to cluster %s: %w", name, err)
	}
	return &member{name: name, config: config, http: over, clients: clients}, nil
}

// Name, Config, HTTP and Clients implement contents.Server.
func (m *member) Name() string                  { return m.name }
func (m *member) Config() *rest.Config          { return m.config }
func (m *member) HTTP() *http.Client            { return m.http }
func (m *member) Clients() kubernetes.Interface { return m.clients }

// Missed implements Inside.
func (m *member) Missed(ctx context.Context, obj *unstructured.Unstructured, leaves func(schema.GroupKind, metav1.Object) bool) ([]string, error) {
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	what := contents.Search{Most: cascade.Most + 1, Leaves: leaves}
	switch kind := obj.GroupVersionKind().GroupKind(); {
	case kind == namespaceKind:
		return contents.InNamespace(short, m, obj.GetName(), what)
	case contents.Defines(kind):
		return contents.OfKind(short, m, obj, what)
	default:
		return nil, nil
	}
}

// Claims implements Inside.
func (m *member) Claims(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := m.clients.CoreV1().PersistentVolumeClaims(namespace).List(short, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the claims in namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}
