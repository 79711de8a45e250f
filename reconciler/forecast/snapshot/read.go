package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// pageSize is the limit of objects in one response of a list.
const pageSize = 500

// Of reads a fleet from its control plane: all policies, clusters and placements, and all objects of the kinds that
// policies select, of those that are placed, and of more.
func Of(ctx context.Context, hub client.Reader, now time.Time, more ...schema.GroupVersionKind) (*Snapshot, error) {
	s := &Snapshot{At: metav1.NewTime(now.UTC().Truncate(time.Second)), Priorities: map[string]int32{}}
	steps := []struct {
		what string
		read func() error
	}{
		{"Clusters", func() error { return s.clusters(ctx, hub) }},
		{"PropagationPolicies", func() error {
			return each(ctx, hub, &policyv1alpha1.PropagationPolicyList{}, func(l *policyv1alpha1.PropagationPolicyList) {
				s.Policies.Propagation = append(s.Policies.Propagation, l.Items...)
			})
		}},
		{"ClusterPropagationPolicies", func() error {
			return each(ctx, hub, &policyv1alpha1.ClusterPropagationPolicyList{}, func(l *policyv1alpha1.ClusterPropagationPolicyList) {
				s.Policies.ClusterPropagation = append(s.Policies.ClusterPropagation, l.Items...)
			})
		}},
		{"OverridePolicies", func() error {
			return each(ctx, hub, &policyv1alpha1.OverridePolicyList{}, func(l *policyv1alpha1.OverridePolicyList) {
				s.Policies.Overrides = append(s.Policies.Overrides, l.Items...)
			})
		}},
		{"ClusterOverridePolicies", func() error {
			return each(ctx, hub, &policyv1alpha1.ClusterOverridePolicyList{}, func(l *policyv1alpha1.ClusterOverridePolicyList) {
				s.Policies.ClusterOverrides = append(s.Policies.ClusterOverrides, l.Items...)
			})
		}},
		{"FederatedResourceQuotas", func() error {
			return each(ctx, hub, &policyv1alpha1.FederatedResourceQuotaList{}, func(l *policyv1alpha1.FederatedResourceQuotaList) {
				s.Policies.Quotas = append(s.Policies.Quotas, l.Items...)
			})
		}},
		{"ResourceBindings", func() error {
			return each(ctx, hub, &workv1alpha2.ResourceBindingList{}, func(l *workv1alpha2.ResourceBindingList) {
				s.Bindings.Namespaced = append(s.Bindings.Namespaced, l.Items...)
			})
		}},
		{"ClusterResourceBindings", func() error {
			return each(ctx, hub, &workv1alpha2.ClusterResourceBindingList{}, func(l *workv1alpha2.ClusterResourceBindingList) {
				s.Bindings.Cluster = append(s.Bindings.Cluster, l.Items...)
			})
		}},
		{"PriorityClasses", func() error {
			return each(ctx, hub, &schedulingv1.PriorityClassList{}, func(l *schedulingv1.PriorityClassList) {
				for i := range l.Items {
					s.Priorities[l.Items[i].Name] = l.Items[i].Value
				}
			})
		}},
		{"ResourceInterpreterCustomizations", func() error {
			return each(ctx, hub, &configv1alpha1.ResourceInterpreterCustomizationList{}, func(l *configv1alpha1.ResourceInterpreterCustomizationList) {
				s.Customizations = append(s.Customizations, l.Items...)
			})
		}},
		{"Kustomizations", func() error {
			return each(ctx, hub, &kustomizev1.KustomizationList{}, func(l *kustomizev1.KustomizationList) {
				s.Kustomizations = append(s.Kustomizations, l.Items...)
			})
		}},
		{"sources", func() error { return s.sources(ctx, hub) }},
	}
	for _, step := range steps {
		if err := step.read(); err != nil {
			return nil, unread(step.what, err)
		}
	}
	return s, s.templates(ctx, hub, more)
}

// ReadTaints reads by what policies clusters get taints, which a plan of a change alone does not need.
func (s *Snapshot) ReadTaints(ctx context.Context, hub client.Reader) (err error) {
	s.Policies.Taints, err = TaintPolicies(ctx, hub)
	return err
}

// TaintPolicies returns by what policies clusters get taints; nil for who may not list them, and does not know them.
func TaintPolicies(ctx context.Context, hub client.Reader) ([]policyv1alpha1.ClusterTaintPolicy, error) {
	found := []policyv1alpha1.ClusterTaintPolicy{}
	err := each(ctx, hub, &policyv1alpha1.ClusterTaintPolicyList{}, func(l *policyv1alpha1.ClusterTaintPolicyList) { found = append(found, l.Items...) })
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return found, err
}

func (s *Snapshot) clusters(ctx context.Context, hub client.Reader) error {
	return each(ctx, hub, &clusterv1alpha1.ClusterList{}, func(l *clusterv1alpha1.ClusterList) { s.Clusters = append(s.Clusters, l.Items...) })
}

// sources reads which files sources take.
func (s *Snapshot) sources(ctx context.Context, hub client.Reader) error {
	add := func(kind string, of metav1.Object, ignore *string, directories []string) {
		if (ignore != nil || len(directories) > 0) && !holds(of) {
			s.Sources = append(s.Sources, Source{Kind: kind, Namespace: of.GetNamespace(), Name: of.GetName(), Ignore: ignore, Directories: directories})
		}
	}
	return errors.Join(
		each(ctx, hub, &sourcev1.GitRepositoryList{}, func(l *sourcev1.GitRepositoryList) {
			for i := range l.Items {
				add(sourcev1.GitRepositoryKind, &l.Items[i], l.Items[i].Spec.Ignore, l.Items[i].Spec.SparseCheckout)
			}
		}),
		each(ctx, hub, &sourcev1.OCIRepositoryList{}, func(l *sourcev1.OCIRepositoryList) {
			for i := range l.Items {
				add(sourcev1.OCIRepositoryKind, &l.Items[i], l.Items[i].Spec.Ignore, nil)
			}
		}),
		each(ctx, hub, &sourcev1.BucketList{}, func(l *sourcev1.BucketList) {
			for i := range l.Items {
				add(sourcev1.BucketKind, &l.Items[i], l.Items[i].Spec.Ignore, nil)
			}
		}),
	)
}

// unread says which kind could not be read. What is not known about clusters must not be taken for missing.
func unread(what string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not list the %s of the control plane, which a plan needs: ask for that right, or for the file that flotilla fleet export writes, and pass it to --fleet", what)
	}
	return err
}

// each calls yield with a list, page by page. A kind that is not served has nothing.
func each[L client.ObjectList](ctx context.Context, hub client.Reader, list L, yield func(L)) error {
	for next := ""; ; {
		page := list.DeepCopyObject().(L)
		err := hub.List(ctx, page, client.Limit(pageSize), client.Continue(next))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		yield(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// templates reads the objects of all kinds that are, or may be, propagated.
func (s *Snapshot) templates(ctx context.Context, hub client.Reader, more []schema.GroupVersionKind) error {
	for _, gvk := range s.kinds(more) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := each(ctx, hub, list, func(page *unstructured.UnstructuredList) {
			for i := range page.Items {
				s.Templates = append(s.Templates, page.Items[i].Object)
			}
		})
		if err != nil {
			return unread(gvk.Kind+"s", err)
		}
	}
	return nil
}

// kinds returns the kinds of templates, sorted, each in one version.
func (s *Snapshot) kinds(more []schema.GroupVersionKind) []schema.GroupVersionKind {
	seen := map[schema.GroupKind]schema.GroupVersionKind{{Kind: "Namespace"}: {Version: "v1", Kind: "Namespace"}}
	add := func(gvk schema.GroupVersionKind) {
		own := strings.HasSuffix(gvk.Group, ".karmada.io") || gvk.Kind == "" || gvk.Kind == "*"
		if _, known := seen[gvk.GroupKind()]; !known && !own {
			seen[gvk.GroupKind()] = gvk
		}
	}
	for i := range s.Bindings.Namespaced {
		of := &s.Bindings.Namespaced[i].Spec.Resource
		add(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	}
	for i := range s.Bindings.Cluster {
		of := &s.Bindings.Cluster[i].Spec.Resource
		add(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	}
	for i := range s.Policies.Propagation {
		for _, of := range s.Policies.Propagation[i].Spec.ResourceSelectors {
			add(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
		}
	}
	for i := range s.Policies.ClusterPropagation {
		for _, of := range s.Policies.ClusterPropagation[i].Spec.ResourceSelectors {
			add(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
		}
	}
	for _, gvk := range more {
		add(gvk)
	}
	out := make([]schema.GroupVersionKind, 0, len(seen))
	for _, gvk := range seen {
		out = append(out, gvk)
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
