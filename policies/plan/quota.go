package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// BeyondQuotaError says that the overrides of a namespace make a workload ask for more than
// its binding records, by which the namespace's quotas count it.
type BeyondQuotaError struct {
	// Namespace has the policies and the quotas.
	Namespace string
	// Policies are the overrides, sorted; at least one.
	Policies []string
	// Quotas are those that count the resources, sorted; at least one.
	Quotas []string
	// Beyond are the resources of which it would ask for more, by how much.
	Beyond corev1.ResourceList
	// Redacted says that the amount is left out, as text of a Secret is in the manifest.
	Redacted bool
}

// Error names all of them, the first policy as override.FaultOf reads it, and what to do.
func (e *BeyondQuotaError) Error() string {
	parts := make([]string, 0, len(e.Beyond))
	for _, name := range slices.Sorted(maps.Keys(e.Beyond)) {
		amount := e.Beyond[name]
		parts = append(parts, fmt.Sprintf("%s of %s", amount.String(), name))
		if e.Redacted {
			parts[len(parts)-1] = string(name)
		}
	}
	more := strings.Join(parts, " and ") + " more"
	if e.Redacted {
		more = "more of " + strings.Join(parts, " and ")
	}
	beside := ""
	if len(e.Policies) > 1 {
		beside = " with " + strings.Join(e.Policies[1:], ", ")
	}
	return override.FaultText(e.Namespace+"/"+e.Policies[0], fmt.Sprintf("it has%s the workload ask for %s than FederatedResourceQuota %s counts: "+
		"change replicas and requests in the template, which is what counts", beside, more, strings.Join(e.Quotas, ", ")))
}

// withinQuota returns an error where the manifest, as overrides of its namespace have changed it, asks for
// more of a resource that is limited there than the binding counts for the cluster, and than
// it asked for before. What cluster-wide overrides set, as standard has it, is allowed: it is set by
// those who set the quotas; standard is nil where there are none.
func (in *WorksInput) withinQuota(target workv1alpha2.TargetCluster, standard, manifest *unstructured.Unstructured, p *WorkPlan) error {
	if len(in.Quotas) == 0 || len(p.Applied.Namespaced) == 0 {
		return nil
	}
	asked, err := in.asks(manifest)
	if err != nil {
		return err
	}
	here := *in.Binding.BindingSpec()
	here.Clusters = []workv1alpha2.TargetCluster{target}
	may := quota.Usage(&here)
	if standard != nil {
		before, err := in.asks(standard)
		if err != nil {
			return err
		}
		may = quota.Most(may, before)
	}
	beyond := quota.Growth(may, asked)
	out := &BeyondQuotaError{Beyond: corev1.ResourceList{}, Redacted: manifest.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""}
	for _, q := range in.Quotas {
		counts := false
		for name, amount := range beyond {
			if quota.Concerns(q, corev1.ResourceList{name: amount}) {
				out.Beyond[name], counts = amount, true
			}
		}
		if counts {
			out.Namespace, out.Quotas = q.Namespace, append(out.Quotas, q.Name)
		}
	}
	if len(out.Beyond) == 0 {
		return nil
	}
	for _, item := range p.Applied.Namespaced {
		out.Policies = append(out.Policies, item.PolicyName)
	}
	slices.Sort(out.Quotas)
	out.Policies = slices.Compact(out.Policies) // rules of one follow each other
	return out
}

// countFields are those by which kinds of Kubernetes say how many Pods there are. Where a
// manifest lacks its own, the cluster makes it one.
var countFields = map[schema.GroupKind]string{
	{Group: "apps", Kind: "Deployment"}: "replicas", {Group: "apps", Kind: "ReplicaSet"}: "replicas", {Group: "apps", Kind: "StatefulSet"}: "replicas",
	{Kind: "ReplicationController"}: "replicas", {Group: "batch", Kind: "Job"}: "parallelism",
}

// counted returns a manifest with the number of its Pods, as a cluster reads it.
func counted(manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	field, counts := countFields[manifest.GroupVersionKind().GroupKind()]
	if spec, ok := manifest.Object["spec"].(map[string]any); !counts || !ok || spec[field] != nil {
		return manifest, nil
	}
	out := manifest.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, int64(1), "spec", field); err != nil {
		return nil, fmt.Errorf("count its Pods: %w", err)
	}
	return out, nil
}

// asks is what a manifest asks for in one cluster, counted as its binding is.
func (in *WorksInput) asks(manifest *unstructured.Unstructured) (corev1.ResourceList, error) {
	manifest, err := counted(manifest)
	if err != nil {
		return nil, err
	}
	spec := workv1alpha2.ResourceBindingSpec{Clusters: make([]workv1alpha2.TargetCluster, 1)}
	if len(in.Binding.BindingSpec().Components) > 0 {
		parts, _, err := in.Interpreter.Components(manifest)
		if err != nil {
			return nil, fmt.Errorf("read its components: %w", err)
		}
		spec.Components = parts
		return quota.Usage(&spec), nil
	}
	replicas, requirements, _, err := in.Interpreter.Replicas(manifest)
	if err != nil {
		return nil, fmt.Errorf("read its replicas: %w", err)
	}
	spec.Clusters[0].Replicas, spec.ReplicaRequirements = replicas, requirements
	return quota.Usage(&spec), nil
}

// QuotasOf are those of all that stand in a namespace.
func QuotasOf(all []*policyv1alpha1.FederatedResourceQuota, namespace string) []*policyv1alpha1.FederatedResourceQuota {
	var out []*policyv1alpha1.FederatedResourceQuota
	for _, q := range all {
		if q.Namespace == namespace {
			out = append(out, q)
		}
	}
	return out
}
