package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// HeldError is why a cluster that others are left for gets no Work, or no more replicas: the template must not be rendered as it is,
// and its version before cannot be had.
type HeldError struct{ Why string }

func (e *HeldError) Error() string {
	return propagation.HeldBack + ", and what it moves to does not get the version before: " + e.Why
}

// Held returns what the clusters of a binding should hold while its template must not be rendered: it is not the version that the binding
// is for, as a quota refuses that, or no policy carries it any more; or half a revision is written. What clusters have stays as it is.
// Those that it moves to get the version that the others run, as far as a Work has that unchanged by overrides; so do those that
// take over replicas. Unknown says that it is not known which overrides apply, so that nothing is rendered. Clusters about which there
// is nothing to say have no plan.
func Held(in WorksInput, works []*workv1alpha1.Work, unknown bool) ([]WorkPlan, error) {
	spec := SpecOf(in.Binding)
	var plans []WorkPlan
	var lack []string
	for _, target := range Targets(spec) {
		if w := workIn(works, target.Name); w == nil || in.differs(w, target) {
			lack = append(lack, target.Name)
		} else {
			plans = append(plans, WorkPlan{Cluster: target.Name, Stands: true})
		}
	}
	if len(lack) == 0 {
		return plans, nil
	}
	awaited, err := in.awaited(works)
	if err != nil {
		return nil, err
	}
	var rendered []WorkPlan
	held := in.restore(works, unknown)
	if held == nil && !awaited {
		if rendered, err = Works(in); err != nil {
			return nil, err
		}
	}
	for _, name := range lack {
		i := slices.IndexFunc(rendered, func(p WorkPlan) bool { return p.Cluster == name })
		switch {
		case i >= 0:
			plans = append(plans, rendered[i])
		case len(spec.GracefulEvictionTasks) > 0 && !awaited:
			plans = append(plans, WorkPlan{Cluster: name, Err: held})
		case workIn(works, name) != nil:
			plans = append(plans, WorkPlan{Cluster: name, Stands: true})
		}
	}
	slices.SortFunc(plans, func(a, b WorkPlan) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return plans, nil
}

// awaited reports whether the template is as clusters have it, so that nothing is held back: the version that the binding is for is about to
// be seen.
func (in *WorksInput) awaited(works []*workv1alpha1.Work) (bool, error) {
	digest, err := propagation.Digest(in.Template)
	if err != nil {
		return false, fmt.Errorf("digest of the template: %w", err)
	}
	return slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool { return w.Annotations[propagation.DigestAnnotation] == digest }) &&
		digest != in.Binding.GetAnnotations()[propagation.DigestAnnotation], nil
}

func workIn(works []*workv1alpha1.Work, cluster string) *workv1alpha1.Work {
	i := slices.IndexFunc(works, func(w *workv1alpha1.Work) bool {
		name, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		return ok && name == cluster && w.DeletionTimestamp == nil
	})
	if i < 0 {
		return nil
	}
	return works[i]
}

// differs reports whether a Work has another number of replicas than its cluster should have.
func (in *WorksInput) differs(w *workv1alpha1.Work, target workv1alpha2.TargetCluster) bool {
	runs, known := in.runs(w)
	return known && runs != target.Replicas
}

// runs returns how many replicas of a divided workload a Work asks for; false where they are not divided, or that is not known.
func (in *WorksInput) runs(w *workv1alpha1.Work) (int32, bool) {
	if spec := in.Binding.BindingSpec(); !placement.IsWorkload(spec) || placement.InSets(spec) || placement.Whole(spec) || len(w.Spec.Workload.Manifests) != 1 {
		return 0, false
	}
	var manifest unstructured.Unstructured
	if manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw) != nil {
		return 0, false
	}
	n, _, known, err := in.Interpreter.Replicas(&manifest)
	return n, known && err == nil
}

// restore puts the version of the template that the binding is for in the place of the present one. What has to leave first cannot give
// it, as that is gone by the time that it is needed.
func (in *WorksInput) restore(works []*workv1alpha1.Work, unknown bool) error {
	digest, spec := in.Binding.GetAnnotations()[propagation.DigestAnnotation], in.Binding.BindingSpec()
	switch {
	case unknown:
		return &HeldError{"which overrides apply is not known while a revision is half written"}
	case splitCompletions(spec, in.Template) != nil:
		return &HeldError{"each cluster has a part of its completions"}
	}
	why, first := "no cluster has it any more", LeaveFirst(spec)
	for _, w := range slices.SortedFunc(slices.Values(works), func(a, b *workv1alpha1.Work) int { return cmp.Compare(a.Namespace, b.Namespace) }) {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		switch {
		case !in.is(w, digest):
		case w.Annotations[policyv1alpha1.AppliedOverrides] != "" || w.Annotations[policyv1alpha1.AppliedClusterOverrides] != "":
			why = "overrides have changed it where it runs"
		case slices.Contains(first, cluster):
			why = cluster + " alone has it, and would have to be left first (failover.cluster.purgeMode: Directly)"
		default:
			restored, err := in.restored(w)
			if err != nil {
				return err
			}
			in.Template, in.digest = restored, w.Annotations[propagation.DigestAnnotation]
			return nil
		}
	}
	return &HeldError{why}
}

// is reports whether a Work has the version of a digest; where it moves, one that asks for the same will do, as may have been written just
// before the edit that is held back.
func (in *WorksInput) is(w *workv1alpha1.Work, digest string) bool {
	if len(w.Spec.Workload.Manifests) != 1 || w.Annotations[propagation.FaultAnnotation] != "" {
		return false
	}
	if w.Annotations[propagation.DigestAnnotation] == digest {
		return true
	}
	var manifest unstructured.Unstructured
	if len(in.Binding.BindingSpec().GracefulEvictionTasks) == 0 || manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw) != nil {
		return false
	}
	_, requests, known, err := in.Interpreter.Replicas(&manifest)
	return known && err == nil && equality.Semantic.DeepEqual(requests, in.Binding.BindingSpec().ReplicaRequirements)
}

// restored returns the template from which a Work was made that no override has changed.
func (in *WorksInput) restored(w *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	var manifest unstructured.Unstructured
	if err := manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("decode work %s/%s: %w", w.Namespace, w.Name, err)
	}
	out, was := Carried(&manifest), manifest.GetAnnotations()
	out.SetUID(types.UID(was[workv1alpha2.ResourceTemplateUIDAnnotation]))
	if g, err := strconv.ParseInt(was[workv1alpha2.ResourceTemplateGenerationAnnotationKey], 10, 64); err == nil {
		out.SetGeneration(g)
	}
	annotations := mapOf(out.GetAnnotations())
	if by := w.Annotations[workv1alpha2.AppliedByAnnotation]; by != "" {
		annotations[workv1alpha2.AppliedByAnnotation] = by
	}
	spec := in.Binding.BindingSpec()
	if w.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite && spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
		annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = workv1alpha2.ResourceConflictResolutionOverwrite
	}
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	labels, own := out.GetLabels(), in.Template.GetLabels()
	for _, key := range failover.StateLabels(spec) { // of the move before: the template may have none of its own
		if _, has := own[key]; !has {
			delete(labels, key)
		}
	}
	out.SetLabels(labels)
	return out, nil
}
