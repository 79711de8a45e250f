package aggregated

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// columns are what `kubectl get clusters` shows; those of priority 1 need -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
	{Name: "Version", Type: "string", Description: "Kubernetes version of the cluster."},
	{Name: "Mode", Type: "string", Description: "How work comes to the cluster: Push or Pull."},
	{Name: "Ready", Type: "string", Description: "Whether the cluster is ready to run workloads."},
	{Name: "Age", Type: "string", Description: "How long ago the cluster joined."},
	{Name: "Zones", Type: "string", Priority: 1, Description: "Failure zones that the cluster covers."},
	{Name: "Region", Type: "string", Priority: 1, Description: "Region that the cluster is in."},
	{Name: "Provider", Type: "string", Priority: 1, Description: "Provider that runs the cluster."},
	{Name: "API-Endpoint", Type: "string", Priority: 1, Description: "URL of the cluster's API server."},
	{Name: "Proxy-URL", Type: "string", Priority: 1, Description: "Proxy on the way to the cluster."},
	{Name: "Taints", Type: "string", Priority: 1, Description: "Taints that keep work away from the cluster."},
}

// table shows Clusters as rows.
type table struct{}

// ConvertToTable returns one row for a Cluster, or one for each Cluster in a list.
func (table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	rows, err := metatable.MetaToTableRow(object, row)
	if err != nil {
		return nil, err
	}
	out := &metav1.Table{Rows: rows}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	if asked, ok := options.(*metav1.TableOptions); !ok || !asked.NoHeaders {
		out.ColumnDefinitions = columns
	}
	return out, nil
}

func row(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil, fmt.Errorf("a table of clusters cannot show a %T", obj)
	}
	ready := metav1.ConditionUnknown
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady); condition != nil {
		ready = condition.Status
	}
	return []any{
		name, excerpt.Runes(excerpt.Line(cluster.Status.KubernetesVersion), mostVersion), string(cluster.Spec.SyncMode), string(ready), age,
		orNone(strings.Join(cluster.Spec.Zones, ",")), orNone(cluster.Spec.Region), orNone(cluster.Spec.Provider),
		cluster.Spec.APIEndpoint, orNone(cluster.Spec.ProxyURL), orNone(taints(cluster.Spec.Taints)),
	}, nil
}

// taints returns the taints of a cluster on one line.
func taints(all []corev1.Taint) string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].ToString()
	}
	return strings.Join(texts, ",")
}

// mostVersion is how many characters of a version a row shows, with the mark for omitted ones.
const mostVersion = 41

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
