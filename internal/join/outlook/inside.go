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

// Inside looks into a member.
type Inside interface {
	// Missed names what would be missed if an object were deleted that is a Namespace or a definition of a
	// kind; nothing for other objects, and for what goes by itself.
	Missed(ctx context.Context, obj *unstructured.Unstructured, leaves func(schema.GroupKind, metav1.Object) bool) ([]string, error)
	// Claims are those in a namespace.
	Claims(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error)
}

// timeout is how long each look may take: who leaves may be about to hang.
const timeout = 20 * time.Second

// member is an Inside that asks the member itself.
type member struct {
	name    string
	config  *rest.Config
	http    *http.Client
	clients kubernetes.Interface
}

// Member returns who looks into the member that config leads to, by the name of its cluster.
func Member(name string, config *rest.Config) (Inside, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
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

// Name, Config, HTTP and Clients are those of a contents.Server.
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
