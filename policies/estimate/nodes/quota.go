package nodes

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate"
)

// Quota is what counts of a ResourceQuota. It must not change once an Index has it.
type Quota struct {
	// Free of each resource that counts; less than nothing where more is used than
	// may be.
	Free []AmountOf
	// Scopes of which one must mean a pod for the quota to be about it; none: it is
	// about all.
	Scopes []Scope
	// Foreign says that it is about pods by what is not known of them here.
	Foreign bool
}

// Scope means pods by their priority class.
type Scope struct {
	Operator corev1.ScopeSelectorOperator
	Values   []string
}

// QuotaOf returns what counts of q: of the resources that are both limited and counted
// there those that pods request, but for storage. "requests." before a name means the
// same resource, and the smaller amount counts.
func QuotaOf(q *corev1.ResourceQuota) *Quota {
	out := &Quota{}
	for name, hard := range q.Status.Hard {
		used, counted := q.Status.Used[name]
		resource, requested := requestedBy(name)
		if !counted || !requested {
			continue
		}
		most, taken := AmountsOf(corev1.ResourceList{resource: hard}), AmountsOf(corev1.ResourceList{resource: used})
		is := AmountOf{resource, most[0].N - taken[0].N}
		if i := slices.IndexFunc(out.Free, func(a AmountOf) bool { return a.Name == resource }); i >= 0 {
			out.Free[i].N = min(out.Free[i].N, is.N)
			continue
		}
		out.Free = append(out.Free, is)
	}
	slices.SortFunc(out.Free, byResource)
	for _, scope := range q.Spec.Scopes {
		out.scope(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		for _, r := range q.Spec.ScopeSelector.MatchExpressions {
			out.scope(r)
		}
	}
	return out
}

func (q *Quota) scope(r corev1.ScopedResourceSelectorRequirement) {
	if r.ScopeName != corev1.ResourceQuotaScopePriorityClass {
		q.Foreign = true
		return
	}
	q.Scopes = append(q.Scopes, Scope{r.Operator, slices.Clone(r.Values)})
}

// requestedBy returns the resource that a limit is about, and false for limits that no
// request of a pod is held against here.
func requestedBy(limit corev1.ResourceName) (corev1.ResourceName, bool) {
	name := strings.TrimPrefix(string(limit), "requests.")
	switch {
	case strings.HasPrefix(name, "limits."), strings.HasPrefix(name, "count/"), strings.Contains(name, ".storageclass.storage.k8s.io/"):
		return "", false
	case name == string(corev1.ResourceCPU), name == string(corev1.ResourceMemory):
		return corev1.ResourceName(name), true
	default: // an extended resource has a domain; what else there is counts objects or storage
		return corev1.ResourceName(name), strings.Contains(name, "/")
	}
}

// about reports whether the quota holds for pods of the priority class.
func (q *Quota) about(class string) bool {
	if q.Foreign {
		return false
	}
	return len(q.Scopes) == 0 || slices.ContainsFunc(q.Scopes, func(s Scope) bool { return s.means(class) })
}

func (s Scope) means(class string) bool {
	switch s.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(s.Values, class)
	default:
		return false
	}
}

// Quotas counts by what the quotas of the workload's namespace leave. The zero value is
// ready.
type Quotas struct{}

// Name implements Plugin.
func (Quotas) Name() string { return "ResourceQuota" }

// Most implements Plugin. What is assumed to run in the namespace takes of its quotas.
func (Quotas) Most(x *Index, ask *Ask) int64 {
	most := int64(math.MaxInt64)
	if ask.Namespace == "" {
		return most
	}
	for _, q := range x.quotas[ask.Namespace] {
		for _, free := range q.Free {
			var want, taken int64
			for i := range ask.Parts {
				want = estimate.Plus(want, q.wants(&ask.Parts[i], free.Name))
			}
			for i := range ask.Assumed {
				if ask.Assumed[i].Namespace == ask.Namespace {
					taken = estimate.Plus(taken, q.wants(&ask.Assumed[i].Part, free.Name))
				}
			}
			if want > 0 {
				most = min(most, max(free.N-taken, 0)/want)
			}
		}
	}
	return most
}

// wants returns how much of the resource all pods of the part take of the quota.
func (q *Quota) wants(p *Part, name corev1.ResourceName) int64 {
	if !q.about(p.Class) {
		return 0
	}
	for _, a := range p.Requests {
		if a.Name == name {
			return estimate.Times(a.N, p.Pods)
		}
	}
	return 0
}
