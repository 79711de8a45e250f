package members

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/crew"
)

var (
	// ErrOtherCluster says that what answers at a member's address is not the
	// cluster that was registered under its name.
	ErrOtherCluster = errors.New("another cluster answers at this address")
	// ErrNotServed says that a member does not serve an object's kind.
	ErrNotServed = errors.New("the member does not serve this kind")
	// ErrNoNamespace says that an object's namespace is not in the member.
	ErrNoNamespace = errors.New("the namespace does not exist in the member")
)

// Member is the connection to one cluster.
type Member struct {
	name        string
	id          string
	config      *rest.Config
	clients     kubernetes.Interface
	dynamic     dynamic.Interface
	kinds       *kinds
	interpreter Interpreter
	clock       clock.WithTicker
	tell        Handler
	crew        *crew.Crew
	http        *http.Client

	trust    atomic.Int32
	suspects chan struct{}

	mu      sync.Mutex
	watches map[schema.GroupVersionKind]*kindWatch
}

// The states of trust in a member.
const (
	unproven int32 = iota
	proven
)

// Name returns the cluster's name.
func (m *Member) Name() string { return m.name }

// Config returns how to connect, with the member's own limits in place. Callers
// copy it before they change it.
func (m *Member) Config() *rest.Config { return m.config }

// HTTP returns the client that Config's requests go through.
func (m *Member) HTTP() *http.Client { return m.http }

// Clients returns typed clients, for what Flotilla reads about the cluster
// itself.
func (m *Member) Clients() kubernetes.Interface { return m.clients }

// Proven says whether the member has shown that it is the registered cluster,
// and nothing has cast doubt on that since.
func (m *Member) Proven() bool { return m.trust.Load() == proven }

// Suspects receives when requests begin to fail on their way: the member may be
// gone, or be another one when it is back.
func (m *Member) Suspects() <-chan struct{} { return m.suspects }

// Doubt withdraws the trust in the member until it has proved itself again: it
// was seen to be out of reach.
func (m *Member) Doubt() { m.trust.Store(unproven) }

// suspect withdraws the trust in the member until it has proved itself again.
func (m *Member) suspect() {
	if !m.trust.CompareAndSwap(proven, unproven) {
		return
	}
	select {
	case m.suspects <- struct{}{}:
	default:
	}
}

// Prove reads who the member is. It returns ErrOtherCluster when that is not the
// cluster that was registered. A member that is registered without an identity
// is taken as it is. When trust returns, watches that broke meanwhile start over.
func (m *Member) Prove(ctx context.Context) error {
	id, err := Identity(ctx, m.clients)
	if err != nil {
		m.trust.Store(unproven)
		return err
	}
	if m.id != "" && id != m.id {
		m.trust.Store(unproven)
		return fmt.Errorf("%w: it was registered as %s and answers as %s", ErrOtherCluster, m.id, id)
	}
	if m.trust.Swap(proven) == proven {
		return nil
	}
	for _, w := range m.all() {
		w.again()
	}
	m.tell.Proven(m.name)
	return nil
}

// Identity returns what tells a cluster from all others: the UID of its
// kube-system namespace.
func Identity(ctx context.Context, clients kubernetes.Interface) (string, error) {
	system, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return string(system.UID), nil
}

// Read returns what the watch of a kind knows about one object, and starts that
// watch where there is none.
func (m *Member) Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*Observed, Presence) {
	return m.watch(gvk).read(key)
}

// Get reads an object from the member itself. Errors: one that
// apierrors.IsNotFound knows, ErrNotServed, or a transport fault.
func (m *Member) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	resource, err := m.resource(ctx, gvk, key.Namespace)
	if err != nil {
		return nil, err
	}
	obj, err := resource.Get(ctx, key.Name, metav1.GetOptions{})
	return obj, m.explain(err, gvk)
}

// OnlyNew is a resource version that no object has. What is applied with it is
// made if it is not there; an object that is there is left alone, and the answer
// is a conflict.
const OnlyNew = "9223372036854775807"

// Apply makes the fields that desired names what they are there, by server-side
// apply, and takes over those that others own. It returns what became of the
// object. Errors: ErrNotServed, ErrNoNamespace, or what the member answered: a
// conflict where desired names another resource version than the object's.
func (m *Member) Apply(ctx context.Context, desired *unstructured.Unstructured) (*Observed, error) {
	gvk := desired.GroupVersionKind()
	resource, err := m.resource(ctx, gvk, desired.GetNamespace())
	if err != nil {
		return nil, err
	}
	content, err := desired.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	answer, err := resource.Patch(ctx, desired.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{
		FieldManager:    FieldManager,
		Force:           ptr.To(true),
		FieldValidation: metav1.FieldValidationIgnore, // warnings would reach nobody, and cost a second look at each field
	})
	if err != nil {
		return nil, m.explain(err, gvk)
	}
	observed, err := trim(answer, m.interpreter)
	if err != nil {
		return nil, err
	}
	m.watch(gvk).note(observed)
	return observed, nil
}

// Patch sends a JSON merge patch that only goes through if the object is still
// the one with this UID, named by the patch's metadata.uid.
func (m *Member) Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error {
	resource, err := m.resource(ctx, gvk, key.Namespace)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	m.watch(gvk).drop(key)
	return m.explain(err, gvk)
}

// Delete removes the object that has this UID, and what it owns in the
// background. An object that is not there is no error; one with another UID is a
// conflict.
func (m *Member) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID) error {
	resource, err := m.resource(ctx, gvk, key.Namespace)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = resource.Delete(ctx, key.Name, metav1.DeleteOptions{
		PropagationPolicy: &background,
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	m.watch(gvk).drop(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return m.explain(err, gvk)
}

// KindsChanged tells that the member may serve other kinds than before.
func (m *Member) KindsChanged() {
	m.kinds.reset()
	for _, w := range m.all() {
		w.again()
	}
	m.tell.KindsChanged(m.name)
}

func (m *Member) resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	kind, err := m.kinds.lookup(ctx, gvk)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%w: %s", ErrNotServed, gvk)
	}
	if err != nil {
		return nil, err
	}
	if !kind.Namespaced {
		return m.dynamic.Resource(kind.Resource), nil
	}
	return m.dynamic.Resource(kind.Resource).Namespace(namespace), nil
}

// explain tells the ways apart in which a member says "not found": the object,
// its namespace, or its kind.
func (m *Member) explain(err error, gvk schema.GroupVersionKind) error {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	switch {
	case details == nil || details.Name == "":
		m.kinds.forget(gvk)
		return fmt.Errorf("%w: %s", ErrNotServed, gvk)
	case details.Kind == "namespaces" && gvk.Kind != "Namespace":
		return fmt.Errorf("%w: %s", ErrNoNamespace, details.Name)
	default:
		return err
	}
}

func (m *Member) watch(gvk schema.GroupVersionKind) *kindWatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, ok := m.watches[gvk]; ok {
		return w
	}
	w := &kindWatch{
		gvk:         gvk,
		lookup:      m.kinds.lookup,
		forget:      m.kinds.forget,
		client:      m.dynamic,
		interpreter: m.interpreter,
		clock:       m.clock,
		changed:     func(o *Observed) { m.tell.Changed(m.name, o) },
		synced:      func(gvk schema.GroupVersionKind) { m.tell.Synced(m.name, gvk) },
		retry:       make(chan struct{}, 1),
		wrote:       map[types.NamespacedName]write{},
	}
	m.watches[gvk] = w
	m.crew.Join(w.run)
	return w
}

func (m *Member) all() []*kindWatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*kindWatch, 0, len(m.watches))
	for _, w := range m.watches {
		out = append(out, w)
	}
	return out
}

// run keeps the watches going until ctx ends.
func (m *Member) run(ctx context.Context) {
	m.crew.Run(ctx)
	m.trust.Store(unproven)
	utilnet.CloseIdleConnectionsFor(m.http.Transport)
}

// connect builds the clients of a member. It sends nothing.
func connect(target Target, o Options, tell Handler) (*Member, error) {
	m := &Member{
		name:        target.Name,
		id:          target.ID,
		interpreter: o.Interpreter,
		clock:       o.Clock,
		tell:        tell,
		crew:        crew.New(),
		suspects:    make(chan struct{}, 1),
		watches:     map[schema.GroupVersionKind]*kindWatch{},
	}
	m.config = rest.CopyConfig(target.Config)
	m.config.QPS, m.config.Burst, m.config.RateLimiter, m.config.Timeout = -1, 0, nil, 0
	limiter := newLimiter(o.Clock)
	m.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &guard{next: next, limiter: limiter, timeout: o.RequestTimeout, suspect: m.suspect}
	})
	var err error
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	m.http.CheckRedirect = refuseRedirect
	if m.clients, err = kubernetes.NewForConfigAndClient(m.config, m.http); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	if m.dynamic, err = dynamic.NewForConfigAndClient(m.config, m.http); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	m.kinds = newKinds(m.clients.Discovery().RESTClient())
	return m, nil
}

// defaultTimeout is how long one request to a member may take.
const defaultTimeout = 30 * time.Second
