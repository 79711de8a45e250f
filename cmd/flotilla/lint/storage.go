package lint

import (
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/selector"
)

var (
	claimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	setKind   = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
)

// storage reports objects in these files that claims need to be bound and that no policy propagates: the class and the
// volume of a claim, and prepared claims for a StatefulSet. propagateDeps does not propagate these. along are claims
// that are propagated with others.
func storage(l *linter, policies []policyv1alpha1.Policy, templates []template, along map[client.ObjectKey]bool) {
	for _, o := range all(l) {
		r := selector.ResourceOf(&unstructured.Unstructured{Object: o.doc.Fields})
		by := carriers(l, policies, r)
		goes := len(by) > 0 || o.gvk == claimKind && along[client.ObjectKey{Namespace: r.Namespace, Name: r.Name}]
		if o.patch || !goes {
			continue
		}
		var claims []map[string]any
		switch o.gvk {
		case claimKind:
			spec, _, _ := unstructured.NestedMap(o.doc.Fields, "spec")
			claims = append(claims, spec)
		case setKind:
			claims = made(l, policies, templates, o)
		}
		reported := map[kinds.Dependency]bool{}
		for _, spec := range claims {
			for _, n := range bound(spec) {
				at := find(templates, n)
				if at < 0 || reported[n] || len(carriers(l, policies, templates[at].Resource)) > 0 {
					continue
				}
				reported[n] = true
				l.add(o, Warning, "", fmt.Sprintf("needs the %s %s, which no policy of these files carries to clusters: select it in a ClusterPropagationPolicy, or ignore this if clusters have one of this name",
					n.Kind, n.Name))
			}
		}
	}
}

// bound returns the class and the volume of a claim.
func bound(spec map[string]any) []kinds.Dependency {
	class, _ := spec["storageClassName"].(string)
	volume, _ := spec["volumeName"].(string)
	return []kinds.Dependency{{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: class}, {APIVersion: "v1", Kind: "PersistentVolume", Name: volume}}
}

// made returns the claims that a StatefulSet creates. It reports prepared claims in these files that no policy
// propagates: the StatefulSet in a cluster would create empty ones instead.
func made(l *linter, policies []policyv1alpha1.Policy, templates []template, set *object) []map[string]any {
	found, _, _ := unstructured.NestedSlice(set.doc.Fields, "spec", "volumeClaimTemplates")
	var out []map[string]any
	for _, one := range found {
		fields, _ := one.(map[string]any)
		spec, _, _ := unstructured.NestedMap(fields, "spec")
		out = append(out, spec)
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		for _, t := range templates {
			ordinal, ahead := strings.CutPrefix(t.Name, name+"-"+set.name+"-")
			if name == "" || !ahead || !digits.MatchString(ordinal) || t.Kind != claimKind.Kind || t.Namespace != set.shown() || len(carriers(l, policies, t.Resource)) > 0 {
				continue
			}
			l.add(set, Warning, "", fmt.Sprintf("needs the PersistentVolumeClaim %s, which no policy of these files carries to clusters: select it in a policy, too, as it would make an empty one there", t.Name))
		}
	}
	return out
}

var digits = regexp.MustCompile(`^\d+$`)
