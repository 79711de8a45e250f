package policies_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// world is a hub and its members, in memory.
type world struct {
	clusters  map[string]*clusterv1alpha1.Cluster
	templates map[string]*unstructured.Unstructured
	policies  map[string]policyv1alpha1.Policy
	overrides map[string]policyv1alpha1.Override
	bindings  map[string]workv1alpha2.Binding
	// priorities are the values of PriorityClasses.
	priorities map[string]int32
	revision   int
	// works by "cluster/Kind ns/name".
	works map[string]*workv1alpha1.Work
	// said is what was last printed about each template.
	reported map[string]string
	plans    []plan.TemplatePlan
	now      time.Time
	know     *interpreter.Interpreter
}

// tenants teach a kind of one's own: a cluster-scoped Tenant refers to a
// ConfigMap and a StorageClass.
var tenants = kinds.Table{{Group: "example.com", Version: "v1", Kind: "Tenant"}: {
	Dependencies: func(obj kinds.Object) ([]kinds.Dependency, error) {
		namespace, _, _ := unstructured.NestedString(obj.Object, "spec", "namespace")
		class, _, _ := unstructured.NestedString(obj.Object, "spec", "storageClass")
		return []kinds.Dependency{
			{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "tenant"},
			{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: class},
		}, nil
	},
}}

func newWorld() *world {
	return &world{
		clusters:   map[string]*clusterv1alpha1.Cluster{},
		templates:  map[string]*unstructured.Unstructured{},
		policies:   map[string]policyv1alpha1.Policy{},
		overrides:  map[string]policyv1alpha1.Override{},
		bindings:   map[string]workv1alpha2.Binding{},
		works:      map[string]*workv1alpha1.Work{},
		reported:   map[string]string{},
		priorities: map[string]int32{},
		now:        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		know:       interpreter.New(tenants, native.Table()),
	}
}

// converge plans the fleet, writes what the loops would write, and returns what
// changed. A second pass must change nothing.
func (w *world) converge() (string, error) {
	w.now = w.now.Add(time.Minute)
	w.occupy()
	w.pass()
	first := w.snapshot()
	w.pass()
	if second := w.snapshot(); first != second {
		return "", fmt.Errorf("planning twice is not planning once:\n%s\n%s", first, second)
	}
	var out []string
	for _, p := range w.plans {
		name := p.Resource.Kind + " " + strings.TrimPrefix(p.Resource.Namespace+"/"+p.Resource.Name, "/")
		if line := name + ": " + outcome(p); w.reported[name] != line {
			w.reported[name] = line
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n"), nil
}

// occupy reports the pods that run in each cluster as allocated.
func (w *world) occupy() {
	for name, c := range w.clusters {
		if c.Status.ResourceSummary == nil {
			continue
		}
		var pods int64
		for _, b := range w.bindings {
			for _, t := range b.BindingSpec().Clusters {
				if t.Name == name {
					pods += int64(t.Replicas)
				}
			}
		}
		c = c.DeepCopy()
		c.Status.ResourceSummary.Allocated = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
		w.clusters[name] = c
	}
}

func (w *world) pass() {
	skip := propagation.DefaultSkipRules()
	w.plans = plan.Fleet(plan.FleetInput{
		Templates: values(w.templates), Policies: values(w.policies), Overrides: values(w.overrides),
		Clusters: values(w.clusters), Bindings: values(w.bindings), Whole: true,
		Skip: skip, Interpreter: w.know, Now: w.now, Priorities: w.priorities,
	})
	for _, p := range w.plans {
		w.write(p)
	}
	w.rollUp()
}

// write writes what the loops would write of a plan.
func (w *world) write(p plan.TemplatePlan) {
	k := key(p.Resource.Kind, p.Resource.Namespace, p.Resource.Name)
	switch p.Outcome {
	case propagation.Released:
		propagation.Unclaim(w.templates[k])
		if b := w.bindings[k]; b != nil {
			propagation.Unclaim(b)
		}
	case propagation.Carried:
		p.Activation.Claim(p.Policy).Set(w.templates[k])
		if p.Binding != nil {
			w.bindings[k] = p.Binding
			w.writeWorks(p)
		}
	}
	switch {
	case p.Dropped:
		delete(w.bindings, k)
		maps.DeleteFunc(w.works, func(wk string, _ *workv1alpha1.Work) bool { return strings.HasSuffix(wk, "/"+k) })
	case p.Binding != nil && p.Outcome != propagation.Carried:
		w.bindings[k] = p.Binding
		w.writeWorks(p)
	}
}

// writeWorks replaces the Works of a template, as the binding loop does.
func (w *world) writeWorks(p plan.TemplatePlan) {
	spec := p.Binding.BindingSpec()
	suffix := "/" + key(p.Resource.Kind, p.Resource.Namespace, p.Resource.Name)
	for _, wp := range p.Works {
		if wp.Err != nil {
			continue
		}
		k := wp.Cluster + suffix
		if have := w.works[k]; have != nil {
			if plan.Same(wp.Work, have) {
				continue
			}
			wp.Work.Status, wp.Work.Generation = have.Status, have.Generation
		}
		wp.Work.Generation++
		w.works[k] = wp.Work
	}
	ready := func(cluster string) bool {
		have := w.works[cluster+suffix]
		return have != nil && rollup.Ready(have)
	}
	ending := eviction.Ending{
		HasWork: func(cluster string) bool { return w.works[cluster+suffix] != nil },
		Ready:   ready,
		Serves: func(cluster string, whole bool) bool {
			have := w.works[cluster+suffix]
			return have != nil && rollup.Serves(have, true, whole)
		},
		Gone:      func(cluster string) bool { return w.clusters[cluster] == nil },
		Scheduled: placement.Answered(p.Binding),
		Now:       w.now,
	}
	spec.GracefulEvictionTasks, _, _ = ending.Of(spec)
	keep := plan.Keeps(spec)
	maps.DeleteFunc(w.works, func(k string, _ *workv1alpha1.Work) bool {
		cluster, ours := strings.CutSuffix(k, suffix)
		return ours && !slices.Contains(keep, cluster)
	})
}

// rollUp writes the statuses of bindings and templates.
func (w *world) rollUp() {
	for k, b := range w.bindings {
		works := w.worksOf(k)
		*b.BindingStatus() = rollup.Status(b, rollup.Report{Works: works, Now: w.now})
		template := w.templates[k]
		if template == nil {
			continue
		}
		judged := template
		if len(works) == 0 {
			judged = rollup.Nowhere(template, b)
		}
		if status, changed, err := w.know.AggregateStatus(judged, rollup.Items(works, nil)); err == nil && changed {
			template.Object["status"] = status
			// The server counts this write too; it must not reach the binding.
			template.SetResourceVersion(w.revise())
		}
	}
}

func (w *world) worksOf(key string) []*workv1alpha1.Work {
	works := []*workv1alpha1.Work{}
	for _, k := range slices.Sorted(maps.Keys(w.works)) {
		if strings.HasSuffix(k, "/"+key) {
			works = append(works, w.works[k])
		}
	}
	return works
}

// snapshot is all that the loops write, as text.
func (w *world) snapshot() string {
	var out strings.Builder
	for _, k := range slices.Sorted(maps.Keys(w.bindings)) {
		b := w.bindings[k]
		fmt.Fprintln(&out, k, b.GetAnnotations(), b.GetLabels(), placement.Text(b.BindingSpec().Clusters), b.BindingStatus())
	}
	for _, k := range slices.Sorted(maps.Keys(w.works)) {
		fmt.Fprintln(&out, k, w.works[k].Generation, string(w.works[k].Spec.Workload.Manifests[0].Raw))
	}
	return out.String()
}

// report lets a member apply what the Work holds and answer with a status.
func (w *world) report(cluster, k string, status map[string]any, fault string) error {
	work := w.works[cluster+"/"+k]
	if work == nil {
		return fmt.Errorf("%s holds no %s", cluster, k)
	}
	applied := metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkAppliedSuccessfulReason,
		Message: workv1alpha1.WorkAppliedSuccessfulMessage, ObservedGeneration: work.Generation,
		LastTransitionTime: metav1.NewTime(w.now),
	}
	if fault != "" {
		applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, workv1alpha1.WorkAppliedFailedReason, fault
	}
	meta.SetStatusCondition(&work.Status.Conditions, applied)
	if fault != "" {
		return nil
	}
	observed := &unstructured.Unstructured{}
	if err := observed.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return err
	}
	observed.SetGeneration(work.Generation)
	if status != nil {
		if _, ok := status["observedGeneration"]; !ok {
			status["observedGeneration"] = work.Generation
		}
		observed.Object["status"] = status
	}
	reflected, err := w.know.ReflectStatus(observed)
	if err != nil {
		return err
	}
	health, err := w.know.Health(observed)
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: reflected, Health: health}}
	return err
}

func key(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

func values[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// outcome is the line that scripts show about a template.
func outcome(p plan.TemplatePlan) string {
	if p.Policy == nil && len(p.NeededBy) == 0 {
		return p.Why
	}
	targets := "nowhere"
	if p.Binding != nil && len(plan.Targets(p.Binding.BindingSpec())) > 0 {
		var parts []string
		for _, t := range plan.Targets(p.Binding.BindingSpec()) {
			part := t.Name
			if t.Replicas > 0 {
				part = fmt.Sprintf("%s=%d", t.Name, t.Replicas)
			}
			parts = append(parts, part)
		}
		targets = strings.Join(parts, " ")
	}
	line := fmt.Sprintf("%s (%s)", targets, p.Why)
	if p.Err != nil {
		line += " " + p.Err.Error()
	}
	for _, wp := range p.Works {
		if wp.Err != nil {
			line += fmt.Sprintf("\n  %s keeps what it has: %v", wp.Cluster, wp.Err)
		}
	}
	return line
}

func uid(s string) types.UID {
	return types.UID("uid-" + strings.ToLower(strings.ReplaceAll(s, " ", "-")))
}

// sortedPairs prints a map as k=v, sorted.
func sortedPairs(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	slices.SortFunc(parts, cmp.Compare[string])
	return strings.Join(parts, " ")
}
