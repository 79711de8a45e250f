package draining

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	volumepolicy "github.com/flotilla-io/flotilla/policies/volumes"
)

// Predict returns a line for each template that holds data in clusters which are about to get taints: whether it leaves them, and
// what becomes of its data. taints are all that each of the clusters will have. It changes nothing, and what cannot be read
// is a line, too.
func Predict(ctx context.Context, hub client.Reader, taints map[string][]corev1.Taint, now time.Time) []string {
	in := drain.Input{Now: now, Taints: []corev1.Taint{}}
	rules, known, err := readFleet(ctx, hub, taints, &in)
	if err != nil {
		return []string{"note: which data stays behind is not known: " + excerpt.Line(err.Error())}
	}
	in.Scheduling = placement.Options{Failover: rules}
	var lines []string
	for _, in.Cluster = range slices.Sorted(maps.Keys(taints)) {
		if !holdsData(in.Bindings, in.Cluster) {
			continue
		}
		rows := drain.Plan(in)
		probes := make([]drain.Row, len(rows))
		for i := range rows {
			probes[i] = rows[i]
			probes[i].State = drain.Leaves // so that what stays is read, too
		}
		have, drains := volumesOf(ctx, hub, probes), failover.Drains(&clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Taints: taints[in.Cluster]}})
		for i := range rows {
			if have.templates[rows[i].Key()] != nil {
				have.add(&rows[i], in.Cluster)
				lines = append(lines, foretold(&rows[i], in.Cluster, known || drains))
			}
		}
		for _, note := range have.notes {
			lines = append(lines, "note: "+note)
		}
	}
	return lines
}

// readFleet reads what a plan needs, and by which rules taints move something: all of them, and false, where the control
// plane has noted none.
func readFleet(ctx context.Context, hub client.Reader, taints map[string][]corev1.Taint, in *drain.Input) (failover.Rules, bool, error) {
	rules, known := failover.Rules{Taints: true, State: true}, false
	err := errors.Join(
		listing.Each(ctx, hub, &clusterv1alpha1.ClusterList{}, func(c *clusterv1alpha1.Cluster) {
			if to, tainted := taints[c.Name]; tainted {
				c = c.DeepCopy()
				c.Spec.Taints = dated(to, in.Now)
			}
			in.Clusters = append(in.Clusters, c)
		})(),
		each(ctx, hub, func(b workv1alpha2.Binding) {
			in.Bindings = append(in.Bindings, b)
			if record, _ := placement.RecordOf(b); !known && record.Rules != nil {
				rules, known = record.Rules.Rules()
			}
		}),
	)
	quotas := listing.Each(ctx, hub, &policyv1alpha1.FederatedResourceQuotaList{}, func(q *policyv1alpha1.FederatedResourceQuota) { in.Quotas = append(in.Quotas, q) })()
	if apierrors.IsForbidden(quotas) {
		quotas = nil // what stays for them is listed as leaving
	}
	return rules, known, errors.Join(err, quotas)
}

// dated returns taints as they are once the control plane has them.
func dated(taints []corev1.Taint, now time.Time) []corev1.Taint {
	out := slices.Clone(taints)
	for i := range out {
		if out[i].Effect == corev1.TaintEffectNoExecute && out[i].TimeAdded == nil {
			out[i].TimeAdded = &metav1.Time{Time: now}
		}
	}
	return out
}

// holdsData reports whether anything is placed in a cluster that may have volume claims.
func holdsData(all []workv1alpha2.Binding, cluster string) bool {
	return slices.ContainsFunc(all, func(b workv1alpha2.Binding) bool {
		of := &b.BindingSpec().Resource
		return slices.Contains(names(b.BindingSpec().Clusters), cluster) && volumepolicy.Concern(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind())
	})
}

// foretold is the line for a template that holds data.
func foretold(row *drain.Row, cluster string, known bool) string {
	begin := "warning: "
	if !known {
		begin += "if failover is on, "
	}
	switch {
	case row.Data == "":
		return fmt.Sprintf("note: %s stays in %s: %s", row.Title(), cluster, row.Says())
	case row.State == drain.Waits && row.Why != "":
		return fmt.Sprintf("%s%s leaves %s; %s", begin, row.Title(), row.Why, row.Data)
	case len(row.To) == 0:
		return fmt.Sprintf("%s%s leaves %s: %s", begin, row.Title(), cluster, row.Data)
	default:
		return fmt.Sprintf("%s%s leaves %s %s: %s", begin, row.Title(), cluster, row.Goes(), row.Data)
	}
}
