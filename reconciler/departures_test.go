package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// plug is pulled after a number of writes to bindings and Works: what loops send after
// that does not arrive.
type plug struct {
	mu     sync.Mutex
	writes int // that still arrive
	pulled chan struct{}
	works  map[string]int // how often each Work was written, by namespace and name
}

func newPlug(writes int) *plug {
	return &plug{writes: writes, pulled: make(chan struct{}), works: map[string]int{}}
}

// written is how often a Work was written.
func (p *plug) written(work string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.works[work]
}

func (p *plug) isPulled() bool {
	select {
	case <-p.pulled:
		return true
	default:
		return false
	}
}

var errPulled = errors.New("the plug is pulled")

func (p *plug) write(obj client.Object, do func() error) error {
	switch obj.(type) {
	case workv1alpha2.Binding, *workv1alpha1.Work:
	default:
		return do()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes == 0 {
		select {
		case <-p.pulled:
		default:
			close(p.pulled)
		}
		return errPulled
	}
	p.writes--
	if _, work := obj.(*workv1alpha1.Work); work {
		p.works[obj.GetNamespace()+"/"+obj.GetName()]++
	}
	return do()
}

// manager hands out a client whose plug can be pulled.
type manager struct {
	ctrl.Manager
	hub client.Client
}

// GetClient implements ctrl.Manager.
func (m manager) GetClient() client.Client { return m.hub }

// intercepted is mgr with a client that goes through these functions.
func intercepted(mgr ctrl.Manager, funcs interceptor.Funcs) (ctrl.Manager, error) {
	through, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
	if err != nil {
		return nil, err
	}
	return manager{Manager: mgr, hub: interceptor.NewClient(through, funcs)}, nil
}

// withPlug are the loops of the moves, with a plug between them and the hub.
func withPlug(p *plug) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		mgr, err := intercepted(mgr, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return p.write(obj, func() error { return c.Create(ctx, obj, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return p.write(obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				return p.write(obj, func() error { return c.Delete(ctx, obj, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return p.write(obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
			},
		})
		if err != nil {
			return err
		}
		return registerMoves(ctx, mgr)
	}
}

// TestADeletionThatIsInterrupted: whatever write of the loops was the last that arrived,
// those that begin after them bring the deletion to its end, and what else is there stays.
// A deletion from two clusters takes five writes at most: of the template by its user, the mark on
// the binding, the end of each Work, and that of the binding.
func TestADeletionThatIsInterrupted(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	m.check(m.hub.Hub.Create(t.Context(), &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "all"},
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}},
	}))
	m.made(ns, "stays")
	for arrive := range 5 {
		t.Run(fmt.Sprintf("after %d of four writes", arrive), func(t *testing.T) {
			m, name := m.in(t), fmt.Sprintf("goes-%d", arrive)
			m.made(ns, name)
			m.check((*m.loops)())
			p := newPlug(arrive)
			*m.loops = m.hub.StartLoops(t, withPlug(p))
			before := m.hub.QuietRevision(t)
			m.check(m.hub.Hub.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
			if arrive < 4 {
				// Loops may need a write less, where one of them sees two changes at once.
				m.eventually("the plug is pulled, or nothing is left to write", func() error {
					if p.isPulled() {
						return nil
					}
					return m.left(ns, name)
				})
				if b := m.there(m.hub.Hub, &workv1alpha2.ResourceBinding{}, ns, name+"-configmap"); p.isPulled() && !b {
					t.Error("the binding is gone before its Works are")
				}
				m.restart()
			}
			m.vanished(ns, name)
			if arrive == 4 {
				m.hub.QuietRevision(t)
				if p.isPulled() {
					t.Error("the loops tried a fifth write")
				}
				// The policy counts what it carries whenever it comes to that.
				others := slices.DeleteFunc(m.hub.Written(t, before), func(key string) bool { return strings.Contains(key, "/propagationpolicies/") })
				if len(others) > 0 {
					t.Errorf("others were written, too: %v", others)
				}
				m.restart()
			}
			for cluster, edge := range m.edges {
				if !m.there(edge, &corev1.ConfigMap{}, ns, "stays") {
					t.Errorf("the other ConfigMap is not in %s any more", cluster)
				}
			}
		})
	}
}

// TestAMoveThatIsInterrupted: whatever write of the loops was the last that arrived, those that begin after them bring the
// move to its end, and at no time no copy does well. What it leaves takes one write of its Work: the end.
func TestAMoveThatIsInterrupted(t *testing.T) {
	m := newMoves(t)
	for _, arrive := range []int{2, 6, 8, 100} {
		t.Run(fmt.Sprintf("after %d writes", arrive), func(t *testing.T) {
			m := m.in(t)
			ns := m.hub.Namespace(t)
			m.start(ns, nil, from)
			count := m.watch(ns)
			count.keep(1)
			m.check((*m.loops)())
			p := newPlug(arrive)
			*m.loops = m.hub.StartLoops(t, withPlug(p))
			before := m.hub.QuietRevision(t)
			m.edit(ns, affinity(to))
			moved := func() error {
				if m.there(m.hub.Hub, &workv1alpha1.Work{}, workv1alpha2.ExecutionNamespace(from), workv1alpha2.WorkName("Deployment", "web", ns)) {
					return errors.New("its Work is there")
				}
				return errors.Join(m.gone(from, ns), m.runs(to, ns))
			}
			m.eventually("the plug is pulled, or it has moved", func() error {
				if p.isPulled() {
					return nil
				}
				return moved()
			})
			if arrive == 100 {
				writes := m.hub.QuietRevision(t) - before
				if n := p.written(workv1alpha2.ExecutionNamespace(from) + "/" + workv1alpha2.WorkName("Deployment", "web", ns)); n != 1 {
					t.Errorf("%d writes of the Work that goes, want 1, and %d in all: %v", n, writes, m.hub.Written(t, before))
				}
			}
			m.restart()
			m.eventually("it has moved", moved)
			count.judge(t)
		})
	}
}

// made makes a ConfigMap, and waits until all members have it and the hub knows.
func (m *moves) made(ns, name string) {
	m.Helper()
	m.check(m.hub.Hub.Create(m.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
	for cluster, edge := range m.edges {
		m.eventually(name+" is in "+cluster, func() error {
			return edge.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: name}, &corev1.ConfigMap{})
		})
	}
	m.eventually(name+" is told to be applied", func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: name + "-configmap"}, b); err != nil {
			return err
		}
		for _, item := range b.Status.AggregatedStatus {
			if !item.Applied {
				return fmt.Errorf("not applied in %s", item.ClusterName)
			}
		}
		if len(b.Status.AggregatedStatus) < len(m.edges) {
			return errors.New("not told of all clusters")
		}
		return nil
	})
}

// vanished waits until nothing of a ConfigMap is left.
func (m *moves) vanished(ns, name string) {
	m.Helper()
	m.eventually("nothing of "+name+" is left", func() error { return m.left(ns, name) })
}

// left errs while something of a ConfigMap is left.
func (m *moves) left(ns, name string) error {
	for cluster, edge := range m.edges {
		if m.there(edge, &corev1.ConfigMap{}, ns, name) {
			return fmt.Errorf("it is in %s", cluster)
		}
		if m.there(m.hub.Hub, &workv1alpha1.Work{}, workv1alpha2.ExecutionNamespace(cluster), workv1alpha2.WorkName("ConfigMap", name, ns)) {
			return fmt.Errorf("there is a Work for %s", cluster)
		}
	}
	if m.there(m.hub.Hub, &workv1alpha2.ResourceBinding{}, ns, name+"-configmap") {
		return errors.New("there is a binding")
	}
	return nil
}

func (m *moves) there(in client.Client, obj client.Object, ns, name string) bool {
	m.Helper()
	err := in.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: name}, obj)
	if !apierrors.IsNotFound(err) {
		m.check(err)
	}
	return err == nil
}
