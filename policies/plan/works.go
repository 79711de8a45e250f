package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Reasons why a cluster gets no Work.
var (
	// ErrNoPermanentID means that the binding has no permanent ID yet.
	ErrNoPermanentID = errors.New("binding has no permanent id")
	// ErrUnknownCluster means that the binding names a cluster that is not known.
	ErrUnknownCluster = errors.New("cluster is not known")
)

// WorkPlan is what one cluster should hold of a binding.
type WorkPlan struct {
	Cluster string
	// Work in full, except for what the server fills in; nil where Err is set.
	Work *workv1alpha1.Work
	// Applied are the overrides that changed the manifest.
	Applied override.Applied
	// Err is why no Work could be made: an *override.Error, a *BeyondQuotaError, or one
	// of the interpreter. A Work that exists already stays as it is then.
	Err error
	// Stands means that the Work that the cluster has stays as it is. Work and Err are nil then.
	Stands bool
}

// WorksInput is a placed binding and what its Works are made from.
type WorksInput struct {
	Binding  workv1alpha2.Binding
	Template *unstructured.Unstructured
	// Cluster returns the cluster of a name.
	Cluster func(name string) (*clusterv1alpha1.Cluster, bool)
	// Overrides that exist; those that do not apply are left out here.
	Overrides   []policyv1alpha1.Override
	Interpreter *interpreter.Interpreter
	// Quotas are those of the template's namespace: overrides that stand there may not ask for
	// more than these count. Empty where quotas are not held against anything.
	Quotas []*policyv1alpha1.FederatedResourceQuota
	// digest is that of a Template that was restored from a Work; empty where it is to be computed.
	digest string
	// stands are clusters whose Works stay as they are.
	stands []string
}

// Works returns what each cluster of the binding should hold, sorted by
// cluster. One cluster's fault is in its WorkPlan; an error is about all.
func Works(in WorksInput) ([]WorkPlan, error) {
	if PermanentID(in.Binding) == "" {
		return nil, ErrNoPermanentID
	}
	digest := in.digest
	if digest == "" {
		var err error
		if digest, err = propagation.Digest(in.Template); err != nil {
			return nil, fmt.Errorf("digest of the template: %w", err)
		}
	}
	targets := Targets(SpecOf(in.Binding))
	completions := splitCompletions(in.Binding.BindingSpec(), in.Template)
	overrides := override.Matching(in.Overrides, selector.ResourceOf(in.Template))
	plans := make([]WorkPlan, len(targets))
	for i, target := range targets {
		if slices.Contains(in.stands, target.Name) {
			plans[i] = WorkPlan{Cluster: target.Name, Stands: true}
			continue
		}
		plans[i] = in.plan(target, digest, completions[target.Name], overrides)
	}
	return plans, nil
}

func (in *WorksInput) plan(target workv1alpha2.TargetCluster, digest string, completions *int32, overrides override.Chain) WorkPlan {
	out := WorkPlan{Cluster: target.Name}
	cluster, ok := in.Cluster(target.Name)
	if !ok {
		out.Err = fmt.Errorf("%s: %w", target.Name, ErrUnknownCluster)
		return out
	}
	manifest, err := in.render(target, completions)
	if err != nil {
		out.Err = err
		return out
	}
	authors, standard, err := in.override(&out, manifest, cluster, overrides)
	if err == nil {
		err = in.withinQuota(target, standard, manifest, &out)
	}
	if err != nil {
		out.Err = err
		return out
	}
	volumes.Outlive(manifest)
	work := in.newWork(target.Name, digest)
	maps.Copy(work.Annotations, out.Applied.Annotations())
	if text := authors.String(); text != "" {
		work.Annotations[workv1alpha2.AppliedByAnnotation] = text
	}
	stamp(manifest, manifestIdentity(work))
	encoded, err := Encode(manifest)
	if err != nil {
		out.Err = fmt.Errorf("encode manifest: %w", err)
		return out
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	out.Work = work
	return out
}

// override changes the manifest for the cluster, and returns all users whose content is in it
// then: who applied the template, and who wrote what changed it. Standard is the manifest as
// cluster-wide overrides alone left it, where quotas are to be kept and there are some.
func (in *WorksInput) override(p *WorkPlan, manifest *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, overrides override.Chain) (authors author.Authors, standard *unstructured.Unstructured, err error) {
	authors, err = authorsOf(in.Template)
	if err != nil {
		return nil, nil, err
	}
	var unread error
	holds := false
	p.Applied, err = overrides.Follow(manifest, cluster, func(o policyv1alpha1.Override, _ int) {
		if len(in.Quotas) > 0 && o.GetNamespace() == "" { // these come first
			standard = manifest.DeepCopy()
		}
		more, err := authorsOf(o)
		authors, unread = authors.With(more), errors.Join(unread, err)
		holds = holds || o.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
	})
	if err == nil {
		err = unread
	}
	recordSecrets(manifest, in.Template, holds)
	return authors, standard, err
}

func authorsOf(obj metav1.Object) (author.Authors, error) {
	out, err := author.Parse(obj.GetAnnotations()[workv1alpha2.AppliedByAnnotation])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", obj.GetName(), err)
	}
	return out, nil
}

// Manifest returns what the cluster would get if there were no overrides; before
// it is marked as a Work's. For those who explain what overrides change.
func (in *WorksInput) Manifest(cluster string) (*unstructured.Unstructured, error) {
	targets := Targets(SpecOf(in.Binding))
	i := slices.IndexFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	if i < 0 {
		return nil, fmt.Errorf("%s: the binding is not for this cluster", cluster)
	}
	return in.render(targets[i], splitCompletions(in.Binding.BindingSpec(), in.Template)[cluster])
}

// render returns a copy of the template with the cluster's share of replicas.
func (in *WorksInput) render(target workv1alpha2.TargetCluster, completions *int32) (*unstructured.Unstructured, error) {
	manifest := in.Template.DeepCopy()
	if spec := in.Binding.BindingSpec(); placement.IsWorkload(spec) && !placement.InSets(spec) {
		revised, _, err := in.Interpreter.Revise(manifest, target.Replicas)
		if err != nil {
			return nil, err
		}
		manifest = revised
	}
	if inherited := failover.Inherits(in.Binding.BindingSpec(), target.Name); len(inherited) > 0 {
		labels := mapOf(maps.Clone(inherited))
		maps.Copy(labels, manifest.GetLabels()) // the labels of its author win
		manifest.SetLabels(labels)
	}
	if completions != nil {
		if err := unstructured.SetNestedField(manifest.Object, int64(*completions), "spec", "completions"); err != nil {
			return nil, fmt.Errorf("set completions: %w", err)
		}
	}
	return manifest, nil
}

// newWork returns the Work of a cluster without its manifest.
func (in *WorksInput) newWork(cluster, digest string) *workv1alpha1.Work {
	b, spec := in.Binding, in.Binding.BindingSpec()
	label, annotations := reference(b)
	annotations[workv1alpha2.ResourceConflictResolutionAnnotation] = conflictResolution(in.Template, spec)
	annotations[propagation.DigestAnnotation] = digest
	if reportsDrift(in.Template, spec.Drift) {
		annotations[workv1alpha2.DriftAnnotation] = workv1alpha2.DriftReport
	}
	ref := spec.Resource
	return &workv1alpha1.Work{
		TypeMeta: workType(),
		ObjectMeta: metav1.ObjectMeta{
			Name:      workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace),
			Namespace: workv1alpha2.ExecutionNamespace(cluster),
			Labels: map[string]string{
				label:                             PermanentID(b),
				workv1alpha2.WorkPermanentIDLabel: WorkID(PermanentID(b), cluster),
			},
			Annotations: annotations,
			Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{
			SuspendDispatching:          ptr.To(Suspended(spec, cluster)),
			PreserveResourcesOnDeletion: ptr.To(ptr.Deref(spec.PreserveResourcesOnDeletion, false)),
		},
	}
}

func workType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: workv1alpha1.ResourceKindWork}
}

// manifestIdentity returns the labels and annotations by which the manifest names its Work and binding.
func manifestIdentity(work *workv1alpha1.Work) identity {
	id := identity{labels: maps.Clone(work.Labels), annotations: map[string]string{
		workv1alpha2.WorkNamespaceAnnotation: work.Namespace,
		workv1alpha2.WorkNameAnnotation:      work.Name,
	}}
	for _, key := range []string{
		workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.ResourceBindingNameAnnotationKey,
		workv1alpha2.ClusterResourceBindingAnnotationKey, workv1alpha2.ResourceConflictResolutionAnnotation,
	} {
		if v, ok := work.Annotations[key]; ok {
			id.annotations[key] = v
		}
	}
	return id
}

// reference returns the label and the annotations by which a Work names its
// binding.
func reference(b workv1alpha2.Binding) (label string, annotations map[string]string) {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingPermanentIDLabel, map[string]string{
			workv1alpha2.ClusterResourceBindingAnnotationKey: b.GetName(),
		}
	}
	return workv1alpha2.ResourceBindingPermanentIDLabel, map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotationKey: b.GetNamespace(),
		workv1alpha2.ResourceBindingNameAnnotationKey:      b.GetName(),
	}
}

// PermanentID returns the permanent id of a binding.
func PermanentID(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return b.GetLabels()[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
	}
	return b.GetLabels()[workv1alpha2.ResourceBindingPermanentIDLabel]
}

// WorkID returns the permanent id of the Work that carries what owner names to
// a cluster; the same each time.
func WorkID(owner, cluster string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(owner+"/"+cluster)).String()
}

// conflictResolution is the template's setting, otherwise the policy's.
func conflictResolution(template *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec) string {
	switch v := template.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]; {
	case v == workv1alpha2.ResourceConflictResolutionOverwrite, v == workv1alpha2.ResourceConflictResolutionAbort:
		return v
	case spec.ConflictResolution == policyv1alpha1.ConflictOverwrite:
		return workv1alpha2.ResourceConflictResolutionOverwrite
	default:
		return workv1alpha2.ResourceConflictResolutionAbort
	}
}

// reportsDrift is the template's setting, otherwise the policy's.
func reportsDrift(template *unstructured.Unstructured, policy policyv1alpha1.DriftBehavior) bool {
	switch strings.ToLower(template.GetAnnotations()[workv1alpha2.DriftAnnotation]) {
	case workv1alpha2.DriftReport:
		return true
	case workv1alpha2.DriftRevert:
		return false
	default:
		return policy == policyv1alpha1.DriftReport
	}
}

// Suspended reports whether changes are kept from a cluster that should have the template.
func Suspended(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	s := spec.Suspension
	return SuspendedAll(spec) || s != nil && s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}

// SuspendedAll reports whether changes are kept from all clusters.
func SuspendedAll(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Suspension != nil && ptr.Deref(spec.Suspension.Dispatching, false)
}

// SuspendedSomewhere reports whether changes are kept from a cluster of the placement.
func SuspendedSomewhere(spec *workv1alpha2.ResourceBindingSpec) bool {
	return slices.ContainsFunc(Targets(spec), func(t workv1alpha2.TargetCluster) bool { return Suspended(spec, t.Name) })
}
