package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/quota"
)

const (
	// doubt is how long a write with an unknown outcome may still take effect.
	doubt = 15 * time.Second
	// timeout is how long a write waits until the quotas are known.
	timeout = 10 * time.Second
)

// Bindings lists the bindings of a namespace, at least as new as a version of the store;
// 0 means any version. The caller must not change the list.
type Bindings func(ctx context.Context, namespace string, atLeast uint64) (*workv1alpha2.ResourceBindingList, error)

// Quota refuses bindings that use more than the FederatedResourceQuotas of their
// namespace allow. In a namespace without one it does nothing.
//
// The usage is counted from the existing bindings and from the writes that were accepted
// and are not stored yet. The latter are reservations, each kept until its write ends.
// Writes in one namespace that ask for more are checked one after the other, so together
// they never exceed a quota. If several servers share one store, each knows only its own
// reservations.
type Quota struct {
	*admission.Handler
	bindings Bindings
	quotas   *Quotas
	clock    clock.PassiveClock

	mu     sync.Mutex
	newest uint64 // the version of the last binding that this server wrote
	spaces map[string]*space
}

// space is the state of one namespace. It is kept while a write there is being checked or
// has a reservation.
type space struct {
	judging      int           // writes that are being checked, or wait for that
	turn         chan struct{} // holds one token, of the write that is being checked
	reservations map[*ticket]reservation
}

// reservation is what a binding will use once a pending write is done.
type reservation struct {
	namespace, binding string
	usage              corev1.ResourceList
	until              time.Time // zero while the write is pending
}

// over reports whether a write with an unknown outcome can no longer take effect.
func (p reservation) over(now time.Time) bool { return !p.until.IsZero() && now.After(p.until) }

// ticket is one write of a binding.
type ticket struct{ space *space }

type ticketKey struct{}

var _ admission.ValidationInterface = (*Quota)(nil)

// NewQuota returns the plugin, which counts bindings against quotas.
func NewQuota(bindings Bindings, quotas *Quotas, clk clock.PassiveClock) *Quota {
	return &Quota{
		Handler: admission.NewHandler(admission.Create, admission.Update), bindings: bindings, quotas: quotas, clock: clk,
		spaces: map[string]*space{},
	}
}

// Begin starts a write of a binding. The write must be validated with the returned context,
// and the returned function must be called with its outcome.
func (q *Quota) Begin(ctx context.Context) (context.Context, func(runtime.Object, error)) {
	t := &ticket{}
	return context.WithValue(ctx, ticketKey{}, t), func(written runtime.Object, err error) { q.end(t, written, err) }
}

// end releases the reservation of a write: from now on the stored binding is counted. If the
// outcome is unknown, the reservation stays for doubt.
func (q *Quota) end(t *ticket, written runtime.Object, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.newest = max(q.newest, versionOf(written))
	}
	if t.space == nil {
		return
	}
	p := t.space.reservations[t]
	delete(t.space.reservations, t)
	if err != nil && !certain(err) {
		p.until = q.clock.Now().Add(doubt)
		t.space.reservations[t] = p
	}
	q.trim(p.namespace)
}

// trim forgets a namespace without checks and reservations. The caller holds mu.
func (q *Quota) trim(namespace string) {
	s := q.spaces[namespace]
	if s == nil || s.judging > 0 {
		return
	}
	now := q.clock.Now()
	maps.DeleteFunc(s.reservations, func(_ *ticket, p reservation) bool { return p.over(now) })
	if len(s.reservations) == 0 {
		delete(q.spaces, namespace)
	}
}

func versionOf(obj runtime.Object) uint64 {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	version, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0 // a dry run has no version
	}
	return version
}

// certain reports whether a failed write certainly has no effect.
func certain(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError &&
		!apierrors.IsTimeout(err) && status.Status().Code != http.StatusRequestTimeout
}

// Validate refuses a binding that asks for more than the quotas allow.
func (q *Quota) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != (schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}) || a.GetSubresource() != "" {
		return nil
	}
	b, ok := a.GetObject().(*workv1alpha2.ResourceBinding)
	if !ok {
		return nil
	}
	var before corev1.ResourceList
	if old, ok := a.GetOldObject().(*workv1alpha2.ResourceBinding); ok {
		before = quota.Usage(&old.Spec)
	}
	now := quota.Usage(&b.Spec)
	growth := quota.Growth(before, now)
	if len(growth) == 0 {
		return nil
	}
	limits, err := q.limits(ctx, a.GetNamespace(), growth)
	if err != nil || len(limits) == 0 {
		return err
	}
	return q.judge(ctx, a, limits, before, now)
}

// limits returns the quotas of a namespace that limit any of the resources in growth.
func (q *Quota) limits(ctx context.Context, namespace string, growth corev1.ResourceList) ([]*policyv1alpha1.FederatedResourceQuota, error) {
	all, err := q.quotas.of(ctx, namespace)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("the quotas are not known yet: try again")
	}
	var out []*policyv1alpha1.FederatedResourceQuota
	for _, limit := range all {
		if limit.DeletionTimestamp == nil && quota.Concerns(limit, growth) {
			out = append(out, limit)
		}
	}
	return out, nil
}

// judge waits for its turn, checks a write that asks for more, and reserves what it will
// use.
func (q *Quota) judge(ctx context.Context, a admission.Attributes, limits []*policyv1alpha1.FederatedResourceQuota, before, now corev1.ResourceList) error {
	s := q.space(a.GetNamespace())
	defer q.leave(a.GetNamespace(), s)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return apierrors.NewTimeoutError("other bindings of the namespace are held against its quotas", 1)
	}
	used, err := q.used(ctx, s, a)
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("count what the namespace uses: %v", err))
	}
	quota.Add(used, before)
	growth := quota.Growth(before, now)
	for _, limit := range limits {
		if err := quota.Check(limit, used, growth); err != nil {
			return refusal(err)
		}
	}
	if t, ok := ctx.Value(ticketKey{}).(*ticket); ok && !a.IsDryRun() {
		q.mu.Lock()
		defer q.mu.Unlock()
		t.space = s
		s.reservations[t] = reservation{namespace: a.GetNamespace(), binding: a.GetName(), usage: now}
	}
	return nil
}

// used returns what all other bindings of a namespace use, or will use once the pending
// writes are done.
func (q *Quota) used(ctx context.Context, s *space, a admission.Attributes) (corev1.ResourceList, error) {
	reserved, newest := q.reserved(s) // before the list, so that a write that ends in between is not missed
	list, err := q.bindings(ctx, a.GetNamespace(), newest)
	if err != nil {
		return nil, err
	}
	delete(reserved, a.GetName())
	used := corev1.ResourceList{}
	for i := range list.Items {
		b := &list.Items[i]
		if b.Name == a.GetName() {
			continue
		}
		usage := quota.Usage(&b.Spec)
		if p, ok := reserved[b.Name]; ok {
			usage = quota.Most(usage, p)
			delete(reserved, b.Name)
		}
		quota.Add(used, usage)
	}
	for _, usage := range reserved {
		quota.Add(used, usage)
	}
	return used, nil
}

// reserved returns what bindings may use by the pending writes, by name of the binding, and
// the version of the last write.
func (q *Quota) reserved(s *space) (map[string]corev1.ResourceList, uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, out := q.clock.Now(), map[string]corev1.ResourceList{}
	for t, p := range s.reservations {
		if p.over(now) {
			delete(s.reservations, t)
			continue
		}
		out[p.binding] = quota.Most(out[p.binding], p.usage)
	}
	return out, q.newest
}

// space returns the state of a namespace, which is kept until leave is called.
func (q *Quota) space(namespace string) *space {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.spaces[namespace]
	if s == nil {
		for other := range q.spaces { // few: each has a pending write, or had one just now
			q.trim(other)
		}
		s = &space{turn: make(chan struct{}, 1), reservations: map[*ticket]reservation{}}
		q.spaces[namespace] = s
	}
	s.judging++
	return s
}

func (q *Quota) leave(namespace string, s *space) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.judging--
	q.trim(namespace)
}

// refusal returns the error for the client: 403 with the reason that schedulers recognize.
func refusal(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: err.Error(),
	}}
}
