package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// The type of a file. Another version has another meaning.
const (
	APIVersion = "cli.flotilla.io/v1alpha1"
	Kind       = "Fleet"
)

// Snapshot is a fleet as it is at one time.
type Snapshot struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// At is when it was read.
	At metav1.Time `json:"at"`

	Clusters   []clusterv1alpha1.Cluster `json:"clusters"`
	Policies   Policies                  `json:"policies"`
	Bindings   Bindings                  `json:"bindings"`
	Priorities map[string]int32          `json:"priorities,omitempty"`
	// Customizations say what kinds mean.
	Customizations []configv1alpha1.ResourceInterpreterCustomization `json:"customizations,omitempty"`
	Kustomizations []kustomizev1.Kustomization                       `json:"kustomizations,omitempty"`
	// Sources say which files they take.
	Sources   []Source         `json:"sources,omitempty"`
	Templates []map[string]any `json:"templates"`
	// Whole is the last field of a file: one without it was cut short.
	Whole bool `json:"whole"`
}

// Policies are all that say where templates go, and as what.
type Policies struct {
	Propagation        []policyv1alpha1.PropagationPolicy        `json:"propagationPolicies,omitempty"`
	ClusterPropagation []policyv1alpha1.ClusterPropagationPolicy `json:"clusterPropagationPolicies,omitempty"`
	Overrides          []policyv1alpha1.OverridePolicy           `json:"overridePolicies,omitempty"`
	ClusterOverrides   []policyv1alpha1.ClusterOverridePolicy    `json:"clusterOverridePolicies,omitempty"`
	Quotas             []policyv1alpha1.FederatedResourceQuota   `json:"federatedResourceQuotas,omitempty"`
	// Taints say which taints clusters get as they are lost. Nil where that is not known.
	Taints []policyv1alpha1.ClusterTaintPolicy `json:"clusterTaintPolicies,omitzero"`
}

// Source is which files a source takes of what it follows.
type Source struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ignore is what it leaves out, and Directories are all that it takes; see artifact.Selection.
	Ignore      *string  `json:"ignore,omitempty"`
	Directories []string `json:"directories,omitempty"`
}

// Bindings are all placements.
type Bindings struct {
	Namespaced []workv1alpha2.ResourceBinding        `json:"resourceBindings,omitempty"`
	Cluster    []workv1alpha2.ClusterResourceBinding `json:"clusterResourceBindings,omitempty"`
}

// Fleet returns the input of a plan. It shares the snapshot's objects.
func (s *Snapshot) Fleet(rules *interpreter.Interpreter, now time.Time) plan.FleetInput {
	in := plan.FleetInput{Whole: true, Skip: propagation.DefaultSkipRules(), Priorities: s.Priorities, Interpreter: rules, Now: now}
	for i := range s.Clusters {
		in.Clusters = append(in.Clusters, &s.Clusters[i])
	}
	for i := range s.Policies.Propagation {
		in.Policies = append(in.Policies, &s.Policies.Propagation[i])
	}
	for i := range s.Policies.ClusterPropagation {
		in.Policies = append(in.Policies, &s.Policies.ClusterPropagation[i])
	}
	for i := range s.Policies.Overrides {
		in.Overrides = append(in.Overrides, &s.Policies.Overrides[i])
	}
	for i := range s.Policies.ClusterOverrides {
		in.Overrides = append(in.Overrides, &s.Policies.ClusterOverrides[i])
	}
	for i := range s.Policies.Quotas {
		in.Quotas = append(in.Quotas, &s.Policies.Quotas[i])
	}
	for i := range s.Bindings.Namespaced {
		in.Bindings = append(in.Bindings, &s.Bindings.Namespaced[i])
	}
	for i := range s.Bindings.Cluster {
		in.Bindings = append(in.Bindings, &s.Bindings.Cluster[i])
	}
	for _, t := range s.Templates {
		in.Templates = append(in.Templates, &unstructured.Unstructured{Object: t})
	}
	return in
}

// Kustomization returns the Kustomization of a name; nil if there is none.
func (s *Snapshot) Kustomization(namespace, name string) *kustomizev1.Kustomization {
	i := slices.IndexFunc(s.Kustomizations, func(ks kustomizev1.Kustomization) bool { return ks.Namespace == namespace && ks.Name == name })
	if i < 0 {
		return nil
	}
	return s.Kustomizations[i].DeepCopy()
}

// Selection returns which files a source takes.
func (s *Snapshot) Selection(of inventory.Source) artifact.Selection {
	for _, source := range s.Sources {
		if source.Kind == of.Kind && source.Namespace == of.Namespace && source.Name == of.Name {
			return artifact.Selection{Ignore: source.Ignore, Directories: source.Directories}
		}
	}
	return artifact.Selection{}
}

// Write returns the snapshot as a file, without values of Secrets. It changes the snapshot.
func (s *Snapshot) Write() ([]byte, error) {
	s.Withhold()
	s.APIVersion, s.Kind, s.Whole = APIVersion, Kind, true
	out, err := report.YAMLOf(s)
	if err != nil {
		return nil, fmt.Errorf("write the fleet: %w", err)
	}
	return out, nil
}

// Read reads a file. Its errors say on one line what is wrong with it.
func Read(content []byte) (*Snapshot, error) {
	var of struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Whole      bool   `json:"whole"`
	}
	const anew = "export it again: flotilla fleet export > fleet.yaml"
	data, err := yaml.YAMLToJSON(content)
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || json.Unmarshal(data, &of) != nil {
		return nil, errors.New("is no export of a fleet, or was cut short: " + anew)
	}
	switch {
	case of.Kind == "" && strings.HasPrefix(of.APIVersion, "cli.flotilla.io/"): // fields are sorted
		return nil, errors.New("was cut short: " + anew)
	case of.Kind != Kind:
		return nil, errors.New("is no export of a fleet: " + anew)
	case of.APIVersion != APIVersion:
		return nil, fmt.Errorf("is an export of version %q, and this program reads %s: %s", of.APIVersion, APIVersion, anew)
	case !of.Whole:
		return nil, errors.New("was cut short: " + anew)
	}
	out := &Snapshot{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("cannot be read (%s): %s", strings.Join(strings.Fields(err.Error()), " "), anew)
	}
	for i, t := range out.Templates {
		obj := &unstructured.Unstructured{}
		raw, err := json.Marshal(t)
		if err == nil {
			err = obj.UnmarshalJSON(raw) // numbers are what they are in templates
		}
		if err != nil {
			return nil, fmt.Errorf("has a template that is none, number %d: %s", i+1, anew)
		}
		out.Templates[i] = obj.Object
	}
	return out, nil
}

// Withheld stands for a value of a Secret in a file.
const Withheld = "d2l0aGhlbGQ=" // "withheld", as a Secret has it

// Withhold removes values of Secrets, what holds text of them, and what leads to clusters.
func (s *Snapshot) Withhold() {
	for i := range s.Clusters {
		c := &s.Clusters[i]
		c.ManagedFields, c.Annotations = nil, nil
		c.Spec = clusterv1alpha1.ClusterSpec{
			ID: c.Spec.ID, SyncMode: c.Spec.SyncMode, Provider: c.Spec.Provider, Region: c.Spec.Region, Zone: c.Spec.Zone, Zones: c.Spec.Zones,
			Taints: c.Spec.Taints, ResourceModels: c.Spec.ResourceModels,
		}
	}
	s.Policies.Propagation = open(s.Policies.Propagation, func(p *policyv1alpha1.PropagationPolicy) metav1.Object { return p })
	s.Policies.ClusterPropagation = open(s.Policies.ClusterPropagation, func(p *policyv1alpha1.ClusterPropagationPolicy) metav1.Object { return p })
	s.Policies.Overrides = open(s.Policies.Overrides, func(p *policyv1alpha1.OverridePolicy) metav1.Object { return p })
	s.Policies.ClusterOverrides = open(s.Policies.ClusterOverrides, func(p *policyv1alpha1.ClusterOverridePolicy) metav1.Object { return p })
	if s.Policies.Taints != nil {
		s.Policies.Taints = append([]policyv1alpha1.ClusterTaintPolicy{}, open(s.Policies.Taints, func(p *policyv1alpha1.ClusterTaintPolicy) metav1.Object { return p })...)
	}
	s.Policies.Quotas = open(s.Policies.Quotas, func(p *policyv1alpha1.FederatedResourceQuota) metav1.Object { return p })
	s.Bindings.Namespaced = open(s.Bindings.Namespaced, func(p *workv1alpha2.ResourceBinding) metav1.Object { return p })
	s.Bindings.Cluster = open(s.Bindings.Cluster, func(p *workv1alpha2.ClusterResourceBinding) metav1.Object { return p })
	s.Customizations = open(s.Customizations, func(p *configv1alpha1.ResourceInterpreterCustomization) metav1.Object { return p })
	s.Kustomizations = open(s.Kustomizations, func(p *kustomizev1.Kustomization) metav1.Object { return p })
	for i := range s.Bindings.Namespaced {
		s.Bindings.Namespaced[i].Status = workv1alpha2.ResourceBindingStatus{}
	}
	for i := range s.Bindings.Cluster {
		s.Bindings.Cluster[i].Status = workv1alpha2.ResourceBindingStatus{}
	}
	for i := range s.Kustomizations {
		s.Kustomizations[i].Status = kustomizev1.KustomizationStatus{}
	}
	s.Templates = slices.DeleteFunc(s.Templates, func(t map[string]any) bool { return holds(&unstructured.Unstructured{Object: t}) })
	s.undigest()
	for _, t := range s.Templates {
		concealed(t)
	}
}

// undigest removes the digests of templates that are not in the file as they are: by one, values could be guessed.
func (s *Snapshot) undigest() {
	whole := map[workv1alpha2.ObjectReference]bool{}
	for _, t := range s.Templates {
		if obj := (&unstructured.Unstructured{Object: t}); !isSecret(t) {
			whole[workv1alpha2.ObjectReference{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}] = true
		}
	}
	remove := func(b metav1.Object, of workv1alpha2.ObjectReference) {
		if whole[workv1alpha2.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}] {
			return
		}
		annotations := b.GetAnnotations()
		delete(annotations, propagation.DigestAnnotation)
		delete(annotations, propagation.EditionAnnotation)
		b.SetAnnotations(annotations)
	}
	for i := range s.Bindings.Namespaced {
		remove(&s.Bindings.Namespaced[i], s.Bindings.Namespaced[i].Spec.Resource)
	}
	for i := range s.Bindings.Cluster {
		remove(&s.Bindings.Cluster[i], s.Bindings.Cluster[i].Spec.Resource)
	}
}

func isSecret(t map[string]any) bool { return t["apiVersion"] == "v1" && t["kind"] == "Secret" }

// holds reports whether text of a Secret is in an object.
func holds(obj metav1.Object) bool {
	return obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
}

// lastApplied is what kubectl remembers of an object: all of it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// open returns the objects in which no text of a Secret is, without what only the server needs.
func open[T any](all []T, of func(*T) metav1.Object) []T {
	var out []T
	for i := range all {
		obj := of(&all[i])
		if holds(obj) {
			continue
		}
		obj.SetManagedFields(nil)
		annotations := obj.GetAnnotations()
		delete(annotations, lastApplied)
		obj.SetAnnotations(annotations)
		out = append(out, all[i])
	}
	return out
}

// concealed removes the values of a template that is a Secret, and from every template what only the server needs.
func concealed(t map[string]any) {
	delete(t, "status")
	unstructured.RemoveNestedField(t, "metadata", "managedFields")
	unstructured.RemoveNestedField(t, "metadata", "annotations", lastApplied)
	if !isSecret(t) {
		return
	}
	delete(t, "stringData")
	data, _ := t["data"].(map[string]any)
	for key := range data {
		data[key] = Withheld
	}
}
