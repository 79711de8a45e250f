package change

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// report prints what was created, or would be.
func (p *promoteFlags) report(cmd *cobra.Command, planned *promotion.Promotion) error {
	if p.output != "" {
		return p.print(cmd, planned)
	}
	out := cmd.OutOrStdout()
	for i, item := range planned.Items {
		what, along := title(item.Template), "promoted from cluster "+p.cluster
		if i > 0 {
			along = "promoted along with it"
		}
		if item.There {
			along = "is in the control plane already"
		}
		if _, err := fmt.Fprintf(out, "%s %s%s\n", what, along, p.suffix()); err != nil {
			return err
		}
	}
	if planned.Policy == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, "%s carries it to cluster %s%s\n", propagation.Title(planned.Policy), p.cluster, p.suffix())
	return err
}

func title(obj *unstructured.Unstructured) string {
	return promotion.Object{GroupVersionKind: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}.String()
}

// print prints what was created as manifests, to be kept in files. It leaves out Secrets.
func (p *promoteFlags) print(cmd *cobra.Command, planned *promotion.Promotion) error {
	var all []map[string]any
	for _, item := range planned.Items {
		if item.Template.GetAPIVersion() == "v1" && item.Template.GetKind() == "Secret" {
			if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s is not printed: what it holds stays out of files\n", title(item.Template)); err != nil {
				return err
			}
			continue
		}
		manifest := item.Template.DeepCopy()
		plan.Prune(manifest)
		propagation.Unclaim(manifest)
		all = append(all, manifest.Object)
	}
	if planned.Policy != nil {
		content, err := policyManifest(planned.Policy)
		if err != nil {
			return err
		}
		all = append(all, content)
	}
	for _, content := range all {
		for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "finalizers"} {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
		for _, field := range []string{"labels", "annotations"} {
			if left, _, _ := unstructured.NestedMap(content, "metadata", field); len(left) == 0 {
				unstructured.RemoveNestedField(content, "metadata", field)
			}
		}
	}
	return write(cmd, p.output, all)
}

// policyManifest returns a policy as a manifest: with its kind, which clients remove from
// responses, and without the label with which the control plane identifies it.
func policyManifest(policy policyv1alpha1.Policy) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(policy, scheme.New())
	if err != nil {
		return nil, err
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(gvk)
	delete(content, "status")
	labels := manifest.GetLabels()
	delete(labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	delete(labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	manifest.SetLabels(labels)
	return content, nil
}

func write(cmd *cobra.Command, format string, all []map[string]any) error {
	out := cmd.OutOrStdout()
	if format == "json" {
		data, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": all}, "", "    ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", data)
		}
		return err
	}
	for i, content := range all {
		data, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		separator := "---\n"
		if i == 0 {
			separator = ""
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, data); err != nil {
			return err
		}
	}
	return nil
}
