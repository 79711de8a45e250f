package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// laggingStore is a store of bindings whose readers may be behind, as a cache is.
type laggingStore struct {
	mu      sync.Mutex
	version uint64
	stored  map[string]*workv1alpha2.ResourceBinding
	// seen is what readers see, up to version shown.
	seen  map[string]*workv1alpha2.ResourceBinding
	shown uint64
	lists int
}

func newLaggingStore() *laggingStore {
	return &laggingStore{stored: map[string]*workv1alpha2.ResourceBinding{}, seen: map[string]*workv1alpha2.ResourceBinding{}}
}

func (s *laggingStore) list(_ context.Context, _ string, atLeast uint64) (*workv1alpha2.ResourceBindingList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.shown < atLeast {
		s.show()
	}
	out := &workv1alpha2.ResourceBindingList{}
	for _, b := range s.seen {
		out.Items = append(out.Items, *b)
	}
	return out, nil
}

func (s *laggingStore) show() {
	s.shown = s.version
	for name, b := range s.stored {
		s.seen[name] = b
	}
}

func (s *laggingStore) put(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	b = b.DeepCopy()
	b.ResourceVersion = strconv.FormatUint(s.version, 10)
	s.stored[b.Name] = b
	return b
}

func (s *laggingStore) get(name string) *workv1alpha2.ResourceBinding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[name]
}

// placed is a binding that uses cpus.
func placed(name string, cpus int32) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: cpus}}
	return b
}

func limitOf(cpus string) *policyv1alpha1.FederatedResourceQuota {
	return &policyv1alpha1.FederatedResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"},
		Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}},
	}
}

func newQuota(s *laggingStore, clk *clocktesting.FakePassiveClock, limits ...*policyv1alpha1.FederatedResourceQuota) *Quota {
	quotas := NewQuotas()
	for _, limit := range limits {
		quotas.set(limit)
	}
	close(quotas.synced)
	return NewQuota(s.list, quotas, clk)
}

func write(obj, old *workv1alpha2.ResourceBinding, dryRun bool) admission.Attributes {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	gvk := workv1alpha2.GroupVersion.WithKind("ResourceBinding")
	return admission.NewAttributesRecord(obj, before, gvk, obj.Namespace, obj.Name, gvk.GroupVersion().WithResource("resourcebindings"), "", operation, nil, dryRun, nil)
}

// The limit holds for concurrent writes, and however late readers see them.
func TestQuotaIsNeverExceeded(t *testing.T) {
	const limit, writers, each = 50, 8, 60
	s := newLaggingStore()
	q := newQuota(s, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), limitOf(strconv.Itoa(limit)))
	var done sync.WaitGroup
	var most atomic.Int64
	for w := range writers {
		done.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for range each {
				name := fmt.Sprintf("b-%d", random.IntN(2*writers))
				old := s.get(name)
				next := placed(name, random.Int32N(9))
				ctx, end := q.Begin(t.Context())
				err := q.Validate(ctx, write(next, old, false), nil)
				switch {
				case err != nil:
					if apierrors.ReasonForError(err) != workv1alpha2.BindingReasonQuotaExceeded {
						t.Errorf("refused with %v", err)
					}
					end(nil, err)
				case random.IntN(4) == 0 || s.get(name) != old: // the write fails, or somebody was quicker
					end(nil, apierrors.NewConflict(workv1alpha2Resource, name, errors.New("stale")))
				default:
					end(s.put(next), nil)
				}
				used := s.used()
				if used > limit {
					t.Errorf("%d is used, %d is allowed", used, limit)
				}
				for was := most.Load(); int64(used) > was; was = most.Load() {
					most.CompareAndSwap(was, int64(used))
				}
			}
		})
	}
	done.Wait()
	if len(q.space("shop").reservations) > 0 {
		t.Errorf("reservations are left: %v", q.space("shop").reservations)
	}
	if most.Load() < limit/2 {
		t.Errorf("only %d was ever let through", most.Load())
	}
}

var workv1alpha2Resource = workv1alpha2.GroupVersion.WithResource("resourcebindings").GroupResource()

func (s *laggingStore) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, b := range s.stored {
		sum += int(b.Spec.Clusters[0].Replicas)
	}
	return sum
}

// TestAMoveAsksForNothing checks that a move between clusters is counted once, also while the
// workload is in both, and is allowed where nothing is left. The same holds for quotas that
// use the names of requests from ResourceQuotas.
func TestAMoveAsksForNothing(t *testing.T) {
	limit := limitOf("3")
	limit.Spec.Overall = corev1.ResourceList{"requests.cpu": resource.MustParse("3")}
	s := newLaggingStore()
	q := newQuota(s, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), limit)
	before := s.put(placed("web", 3))
	moved := before.DeepCopy()
	moved.Spec.Clusters[0].Name = "b"
	moved.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a", Replicas: ptr.To[int32](3), PurgeMode: policyv1alpha1.PurgeModeGracefully}}
	if err := q.Validate(t.Context(), write(moved, before, false), nil); err != nil {
		t.Errorf("a move: %v", err)
	}
	moved = s.put(moved)
	ended := moved.DeepCopy()
	ended.Spec.GracefulEvictionTasks = nil
	if err := q.Validate(t.Context(), write(ended, moved, false), nil); err != nil {
		t.Errorf("its end: %v", err)
	}
	grown := moved.DeepCopy()
	grown.Spec.Clusters[0].Replicas = 4
	if err := q.Validate(t.Context(), write(grown, moved, false), nil); apierrors.ReasonForError(err) != workv1alpha2.BindingReasonQuotaExceeded {
		t.Errorf("one replica more: %v", err)
	}
}

func TestQuota(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	for name, tc := range map[string]struct {
		quotas []*policyv1alpha1.FederatedResourceQuota
		before func(t *testing.T, q *Quota, s *laggingStore)
		write  admission.Attributes
		want   string
		lists  int
	}{
		"without a quota nothing is counted": {write: write(placed("b", 1000), nil, false)},
		"a quota of other resources counts nothing": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")}}}},
			write:  write(placed("b", 1000), nil, false),
		},
		"what does not grow is not counted": {quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("1")}, write: write(placed("b", 5), placed("b", 9), false)},
		"up to the limit":                   {quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("5")}, write: write(placed("b", 5), nil, false), lists: 1},
		"beyond the limit": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("4")}, write: write(placed("b", 5), nil, false), lists: 1,
			want: "FederatedResourceQuota shop/team is exceeded: cpu: 0 of 4 are used, 5 more are asked for",
		},
		"what others use counts, what it used itself does not count twice": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("10")},
			before: func(_ *testing.T, _ *Quota, s *laggingStore) {
				s.put(placed("other", 5))
				s.put(placed("b", 3))
				s.show()
			},
			write: write(placed("b", 6), placed("b", 3), false), lists: 1,
			want: "cpu: 8 of 10 are used, 3 more are asked for",
		},
		"a write that is under way counts": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("10")},
			before: func(t *testing.T, q *Quota, _ *laggingStore) {
				ctx, _ := q.Begin(t.Context())
				if err := q.Validate(ctx, write(placed("other", 8), nil, false), nil); err != nil {
					t.Fatal(err)
				}
			},
			write: write(placed("b", 3), nil, false), lists: 2,
			want: "cpu: 8 of 10 are used, 3 more are asked for",
		},
		"a dry run reserves nothing": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("10")},
			before: func(t *testing.T, q *Quota, _ *laggingStore) {
				ctx, _ := q.Begin(t.Context())
				if err := q.Validate(ctx, write(placed("other", 8), nil, true), nil); err != nil {
					t.Fatal(err)
				}
			},
			write: write(placed("b", 3), nil, false), lists: 2,
		},
		"a dry run is refused like any other": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("4")}, write: write(placed("b", 5), nil, true), lists: 1,
			want: "cpu: 0 of 4 are used, 5 more are asked for",
		},
		"a write whose outcome is not known counts for a while": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("10")},
			before: func(t *testing.T, q *Quota, _ *laggingStore) {
				ctx, end := q.Begin(t.Context())
				if err := q.Validate(ctx, write(placed("other", 8), nil, false), nil); err != nil {
					t.Fatal(err)
				}
				end(nil, context.DeadlineExceeded)
				clk.SetTime(clk.Now().Add(doubt - time.Second))
			},
			write: write(placed("b", 3), nil, false), lists: 2,
			want: "cpu: 8 of 10 are used, 3 more are asked for",
		},
		"and then no more": {
			quotas: []*policyv1alpha1.FederatedResourceQuota{limitOf("10")},
			before: func(t *testing.T, q *Quota, _ *laggingStore) {
				ctx, end := q.Begin(t.Context())
				if err := q.Validate(ctx, write(placed("other", 8), nil, false), nil); err != nil {
					t.Fatal(err)
				}
				end(nil, apierrors.NewTimeoutError("slow", 1))
				clk.SetTime(clk.Now().Add(doubt + time.Second))
			},
			write: write(placed("b", 3), nil, false), lists: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLaggingStore()
			q := newQuota(s, clk, tc.quotas...)
			if tc.before != nil {
				tc.before(t, q, s)
			}
			ctx, _ := q.Begin(t.Context())
			err := q.Validate(ctx, tc.write, nil)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("error = %v", err)
			case tc.want != "" && (!apierrors.IsForbidden(withReason(err)) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error = %v, want %s", err, tc.want)
			}
			if s.lists != tc.lists {
				t.Errorf("bindings were listed %d times, want %d", s.lists, tc.lists)
			}
		})
	}
}

// withReason replaces the reason of quotas in an error by the usual reason of its code.
func withReason(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != workv1alpha2.BindingReasonQuotaExceeded || status.ErrStatus.Code != 403 {
		return err
	}
	return apierrors.NewForbidden(workv1alpha2Resource, "", err)
}

// A write that gets no turn, or whose quotas are not known, ends with its request.
func TestQuotaGivesUp(t *testing.T) {
	s := newLaggingStore()
	q := newQuota(s, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), limitOf("10"))
	q.space("shop").turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Validate(ctx, write(placed("b", 1), nil, false), nil); !apierrors.IsTimeout(err) {
		t.Errorf("error = %v", err)
	}
	q = NewQuota(s.list, NewQuotas(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	if err := q.Validate(ctx, write(placed("b", 1), nil, false), nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("error = %v", err)
	}
}

func BenchmarkWithoutQuota(b *testing.B) {
	q := newQuota(newLaggingStore(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	request := write(placed("b", 3), nil, false)
	for b.Loop() {
		ctx, end := q.Begin(b.Context())
		if err := q.Validate(ctx, request, nil); err != nil {
			b.Fatal(err)
		}
		end(nil, nil)
	}
}

// An invalid quota that was stored before such quotas were refused must not keep the others
// out of the cache.
func TestAQuotaThatCannotBeReadLimitsNothing(t *testing.T) {
	for name, tc := range map[string]struct{ overall, want string }{
		"a quota":                       {"{cpu: 5}", "5"},
		"one whose amount is no amount": {`{cpu: "1e99999999999999999999"}`, ""},
		"one whose limits are no map":   {"[cpu]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, "apiVersion: policy.karmada.io/v1alpha1\nkind: FederatedResourceQuota\nmetadata: {namespace: shop, name: q, resourceVersion: '7'}\nspec: {overall: "+tc.overall+"}")
			out, err := quotaOf(obj)
			if err != nil {
				t.Fatal(err)
			}
			limit, ok := out.(*policyv1alpha1.FederatedResourceQuota)
			if !ok || limit.Namespace != "shop" || limit.Name != "q" || limit.ResourceVersion != "7" {
				t.Fatalf("got %v, want the quota shop/q", out)
			}
			got := ""
			if cpu, limited := limit.Spec.Overall[corev1.ResourceCPU]; limited {
				got = cpu.String()
			}
			if got != tc.want {
				t.Errorf("cpu is limited to %q, want %q", got, tc.want)
			}
		})
	}
}
