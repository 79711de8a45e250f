package aggregated

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

func TestConvertToTable(t *testing.T) {
	created := metav1.NewTime(time.Now().Add(-48 * time.Hour))
	full := clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1", CreationTimestamp: created},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, Zones: []string{"a", "b"}, Region: "eu", Provider: "acme", APIEndpoint: "https://eu", ProxyURL: "http://proxy",
			Taints: []corev1.Taint{{Key: "maintenance", Value: "tonight", Effect: corev1.TaintEffectNoExecute}, {Key: "edge", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.4",
			Conditions:        []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
		},
	}
	bare := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us-1", CreationTimestamp: created}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	long := *full.DeepCopy()
	long.Status.KubernetesVersion = strings.Repeat("v", 5000)
	fullRow := []any{"eu-1", "v1.36.4", "Push", "True", "2d", "a,b", "eu", "acme", "https://eu", "http://proxy", "maintenance=tonight:NoExecute,edge:NoSchedule"}
	bareRow := []any{"us-1", "", "Pull", "Unknown", "2d", "<none>", "<none>", "<none>", "", "<none>", "<none>"}
	longRow := slices.Clone(fullRow)
	longRow[1] = strings.Repeat("v", 40) + "…"
	cases := map[string]struct {
		object      runtime.Object
		options     *metav1.TableOptions
		wantRows    [][]any
		wantColumns int
		wantVersion string
	}{
		"one cluster":                    {object: &full, wantRows: [][]any{fullRow}, wantColumns: 11},
		"one whose version takes no end": {object: &long, wantRows: [][]any{longRow}, wantColumns: 11},
		"a list": {
			object:   &clusterv1alpha1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []clusterv1alpha1.Cluster{full, bare}},
			wantRows: [][]any{fullRow, bareRow}, wantColumns: 11, wantVersion: "7",
		},
		"an event of a watch after the first has no headers": {object: &bare, options: &metav1.TableOptions{NoHeaders: true}, wantRows: [][]any{bareRow}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var options runtime.Object
			if tc.options != nil {
				options = tc.options
			}
			got, err := table{}.ConvertToTable(t.Context(), tc.object, options)
			if err != nil {
				t.Fatal(err)
			}
			var rows [][]any
			for _, r := range got.Rows {
				rows = append(rows, r.Cells)
			}
			if diff := cmp.Diff(tc.wantRows, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if len(got.ColumnDefinitions) != tc.wantColumns || got.ResourceVersion != tc.wantVersion {
				t.Errorf("%d columns of version %q, want %d of %q", len(got.ColumnDefinitions), got.ResourceVersion, tc.wantColumns, tc.wantVersion)
			}
		})
	}
	if _, err := (table{}).ConvertToTable(t.Context(), &corev1.Pod{}, nil); err == nil {
		t.Error("a table of clusters shows a pod")
	}
}
