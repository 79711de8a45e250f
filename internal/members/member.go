package members

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/internal/members/codec"
	"github.com/flotilla-io/flotilla/internal/members/informer"
	"github.com/flotilla-io/flotilla/internal/members/transport"
)

var (
	// ErrOtherCluster says that the server at a member's address is not the
	// cluster that was registered under its name.
	ErrOtherCluster = errors.New("another cluster answers at this address")
	// ErrNotServed says that a member does not serve an object's kind.
	ErrNotServed = errors.New("the member does not serve this kind")
	// ErrDefinitionLeaves says that a member creates no objects of a kind, since it is
	// deleting the kind's definition.
	ErrDefinitionLeaves = errors.New("the member is deleting the definition of this kind, and makes nothing of it before the next one is there")
	// ErrNoNamespace says that an object's namespace is not in the member.
	ErrNoNamespace = errors.New("the namespace does not exist in the member")
)

// Member is the connection to one cluster.
type Member struct {
	name      string
	id        string
	config    *rest.Config
	clients   kubernetes.Interface
	codec     *codec.Clients
	dynamic   dynamic.Interface
	report    Handler
	http      *http.Client
	transport *transport.Transport
	informer  *informer.Informer

	trust    atomic.Int32
	answered atomic.Pointer[answer] // the last answer; nil: there was none
	suspects chan struct{}

	*tenure
}

// answer is when a member last proved itself, and since when nothing has cast doubt on
// that.
type answer struct{ at, since time.Time }

// The states of trust in a member.
const (
	unproven int32 = iota
	proven
)

// Name returns the cluster's name.
func (m *Member) Name() string { return m.name }

// Config returns the configuration of connections, with the member's own limits in place, for use
// with HTTP. Credentials are added below it. Callers copy it before they change it.
func (m *Member) Config() *rest.Config { return m.config }

// HTTP returns the client that Config's requests go through.
func (m *Member) HTTP() *http.Client { return m.http }

// Clients returns typed clients, for what Flotilla reads about the cluster
// itself.
func (m *Member) Clients() kubernetes.Interface { return m.clients }

// Proven reports whether the member has shown that it is the registered cluster,
// and nothing has cast doubt on that since.
func (m *Member) Proven() bool { return m.trust.Load() == proven }

// Suspects receives when requests begin to fail in transport, or have no answer:
// the member may be gone, or be another one when it is back.
func (m *Member) Suspects() <-chan struct{} { return m.suspects }

// Doubt withdraws the trust in the member until it has proved itself again: it
// was seen to be out of reach.
func (m *Member) Doubt() { m.trust.Store(unproven) }

// suspect withdraws the trust in the member until it has proved itself again.
func (m *Member) suspect() {
	if m.trust.CompareAndSwap(proven, unproven) {
		alert(m)
	}
}

// alert requests a check of the member, one however often it is called.
func alert(m *Member) {
	select {
	case m.suspects <- struct{}{}:
	default:
	}
}

// Prove reads the member's identity. It returns ErrOtherCluster when it is not the
// cluster that was registered, and ErrClaimed when it belongs to another hub. A member that
// belongs to no hub is claimed. A member that is registered without an identity
// is accepted as it is. One that has proved itself stays trusted while it does not
// show its identity, unless it cannot be reached or refuses the credentials. When
// trust returns, watches that broke meanwhile start over; where the member was set
// back to an earlier state, all do.
func (m *Member) Prove(ctx context.Context) error {
	began := m.clock.Now()
	still := m.transport.Now()
	system, err := systemOf(ctx, m.clients)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		m.trust.Store(unproven)
	}
	if err != nil {
		return err
	}
	if id := string(system.UID); m.id != "" && id != m.id {
		m.trust.Store(unproven)
		return fmt.Errorf("%w: it was registered as %s and answers as %s", ErrOtherCluster, m.id, id)
	}
	if m.observe(system) {
		log.FromContext(ctx).Info("The cluster was set back to an earlier state: all of it is read anew", "cluster", m.name)
		m.informer.Reread()
	}
	if err := m.claim(ctx, system); err != nil {
		if Barred(err) {
			m.trust.Store(unproven)
		}
		return err
	}
	was := unproven
	if !still(func() { was = m.trust.Swap(proven) }) {
		return m.Prove(ctx) // the answer is from a target that was replaced meanwhile
	}
	if last := m.answered.Load(); was == proven && last != nil {
		m.answered.Store(&answer{at: began, since: last.since})
		return nil
	}
	m.answered.Store(&answer{at: began, since: began})
	if was == proven {
		return nil
	}
	m.informer.Retry()
	m.report.Proven(m.name)
	return nil
}

// Barred reports whether an error of Prove means that another hub or place acts in the member, or may.
func Barred(err error) bool {
	return slices.ContainsFunc([]error{ErrClaimed, ErrPushed, ErrAgent, ErrElsewhere, ErrMoving, ErrLetGo, ErrLeft, ErrContested}, func(is error) bool { return errors.Is(err, is) })
}

// Identity returns what distinguishes a cluster from all others: the UID of its
// kube-system namespace.
func Identity(ctx context.Context, clients kubernetes.Interface) (string, error) {
	system, err := systemOf(ctx, clients)
	if err != nil {
		return "", err
	}
	return string(system.UID), nil
}

func systemOf(ctx context.Context, clients kubernetes.Interface) (*corev1.Namespace, error) {
	system, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	return system, nil
}

// Read returns what the watch of a kind has seen of one object, and starts that
// watch where there is none.
func (m *Member) Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*Observed, Presence) {
	return m.informer.Read(gvk, key)
}

// Blind returns the kinds that could not be read in a member for at least a time, although
// it answers.
func Blind(m *Member, least time.Duration) []informer.Blind { return m.informer.Blind(least) }

// Get reads an object from the member itself. Errors: one that
// apierrors.IsNotFound knows, ErrNotServed, or a transport fault.
func (m *Member) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	resource, err := m.own().resource(ctx, gvk, key.Namespace)
	if err != nil {
		return nil, err
	}
	obj, err := resource.Get(ctx, key.Name, metav1.GetOptions{})
	return obj, m.own().explain(err, gvk)
}

// OnlyNew is a resource version that no object has. What is applied with it is
// made if it is not there; an object that is there is left alone, and the answer
// is a conflict.
const OnlyNew = "9223372036854775807"

// Apply sets the fields of desired by server-side
// apply, with force: it takes over those that others own. It returns the resulting
// object. Errors: ErrNotServed, ErrDefinitionLeaves, ErrNoNamespace, or what the member
// answered: a conflict where desired names another resource version than the object's.
func (m *Member) Apply(ctx context.Context, desired *unstructured.Unstructured) (*Observed, error) {
	return m.own().Apply(ctx, desired)
}

// Patch sends a JSON merge patch that only goes through if the object is still
// the one with this UID, named by the patch's metadata.uid.
func (m *Member) Patch(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, patch []byte) error {
	return m.own().Patch(ctx, gvk, key, patch)
}

// Autoscaled reports whether a HorizontalPodAutoscaler of the member scales an
// object. It asks the member.
func (m *Member) Autoscaled(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (bool, error) {
	scalers, err := m.clients.AutoscalingV2().HorizontalPodAutoscalers(key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list what scales in namespace %s: %w", key.Namespace, err)
	}
	for i := range scalers.Items {
		target := scalers.Items[i].Spec.ScaleTargetRef
		if gv, err := schema.ParseGroupVersion(target.APIVersion); err == nil && gv.Group == gvk.Group && target.Kind == gvk.Kind && target.Name == key.Name {
			return true, nil
		}
	}
	return false, nil
}

// Each calls yield for all managed objects that the running watches of the member
// have seen. It sends nothing.
func Each(m *Member, yield func(schema.GroupVersionKind, *Observed)) { m.informer.Each(yield) }

// KindsChanged reports that the member may serve other kinds than before.
func (m *Member) KindsChanged() {
	m.informer.KindsChanged()
	m.report.KindsChanged(m.name)
}

// run keeps the watches going until ctx ends.
func (m *Member) run(ctx context.Context) {
	m.informer.Run(ctx)
	m.trust.Store(unproven)
	utilnet.CloseIdleConnectionsFor(m.http.Transport)
}

// connect builds the clients of a member. It sends nothing.
func connect(target Target, o Options, report Handler) (*Member, error) {
	m := &Member{name: target.Name, id: target.ID, report: report, suspects: make(chan struct{}, 1)}
	base, _, err := rest.DefaultServerUrlFor(target.Config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	// One request without an answer is no reason to keep all others from the
	// member: it is checked whether the member is still there.
	m.transport, err = transport.New(target.Config, transport.Options{Clock: o.Clock, Timeout: o.RequestTimeout, Gone: m.suspect, Slow: func() { alert(m) }, Gate: o.Gate})
	if err != nil {
		return nil, err
	}
	m.config = &rest.Config{Host: base.String(), APIPath: target.Config.APIPath, UserAgent: target.Config.UserAgent, QPS: -1, Transport: m.transport}
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	m.http.CheckRedirect = transport.RefuseRedirect
	if m.clients, err = kubernetes.NewForConfigAndClient(m.config, m.http); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	if m.codec, err = codec.New(m.config); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	if m.dynamic, err = m.codec.Client(m.http); err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", target.Name, err)
	}
	m.tenure = &tenure{clients: m.clients, claimant: target.Claimant, marks: target.Marks, clock: o.Clock}
	m.informer = informer.New(informer.Options{
		Client: m.dynamic, Discovery: m.clients.Discovery().RESTClient(), Interpreter: o.Interpreter, Clock: o.Clock,
		Changed: func(o *Observed) { report.Changed(m.name, o) },
		Synced:  func(gvk schema.GroupVersionKind) { report.Synced(m.name, gvk) },
	})
	return m, nil
}

// defaultTimeout is how long one request to a member may take.
const defaultTimeout = 30 * time.Second
