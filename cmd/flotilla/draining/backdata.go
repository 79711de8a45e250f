package draining

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
	volumepolicy "github.com/flotilla-io/flotilla/policies/volumes"
)

// leavingRow is the row of a template that leaves where it is for some clusters.
func leavingRow(b workv1alpha2.Binding, to []workv1alpha2.TargetCluster) drain.Row {
	of := &b.BindingSpec().Resource
	return drain.Row{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, State: drain.Leaves, To: to}
}

// readVolumes reads what the templates have that are to come back, before they do: a cluster that gets one no longer names the
// claims that it had kept of it.
func (r *Return) readVolumes(ctx context.Context, moved []workv1alpha2.Binding) error {
	rows := make([]drain.Row, len(moved))
	for i, b := range moved {
		rows[i] = leavingRow(b, nil)
	}
	r.volumes = volumesOf(ctx, r.Hub, rows)
	for _, note := range r.volumes.notes {
		if _, err := fmt.Fprintf(r.ErrOut, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// wouldLeave is what becomes of the data of a template that may leave where it is, behind something.
func (r *Return) wouldLeave(b workv1alpha2.Binding) string {
	row := leavingRow(b, nil)
	from := slices.DeleteFunc(names(b.BindingSpec().Clusters), func(name string) bool { return slices.Contains(r.Clusters, name) })
	if data := volumepolicy.LeftBehind(r.volumes.templates[row.Key()], from, r.volumes.there.In(r.Clusters)); data != "" {
		return "; where that moves it, " + data
	}
	return ""
}

// warn says of a template that was placed anew what becomes of the data in the clusters that it leaves.
func (r *Return) warn(before, b workv1alpha2.Binding) error {
	row := leavingRow(b, b.BindingSpec().Clusters)
	was, is := names(before.BindingSpec().Clusters), names(row.To)
	from := slices.DeleteFunc(slices.Clone(was), func(name string) bool { return slices.Contains(is, name) })
	added := slices.DeleteFunc(slices.Clone(is), func(name string) bool { return slices.Contains(was, name) })
	template := r.volumes.templates[row.Key()]
	data := volumepolicy.LeftBehind(template, from, r.volumes.there.In(added))
	if row.RunsOn = len(added) == 0; row.RunsOn {
		data = volumepolicy.Stay(template, from)
	}
	if data == "" {
		return nil
	}
	_, err := fmt.Fprintf(r.ErrOut, "warning: %s leaves %s %s: %s\n", row.Title(), strings.Join(from, ", "), row.Goes(), data)
	return err
}

func names(clusters []workv1alpha2.TargetCluster) []string {
	out := make([]string, len(clusters))
	for i := range clusters {
		out[i] = clusters[i].Name
	}
	return out
}
