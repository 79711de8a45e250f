package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// target selects the clusters to change, and whether it is a dry run.
type target struct {
	fleet    *fleet.Flags
	selector string
	all      bool
	dryRun   string
	// then, if not nil, is called with the clusters once all of them are as requested.
	then func(cmd *cobra.Command, hub client.Client, names []string) error
	// predict, if not nil, returns lines about what becomes of clusters that are to have these taints. It is called before they do.
	predict func(ctx context.Context, hub client.Reader, taints map[string][]corev1.Taint) []string
	// effect, if not nil, returns what a change of taints does to what runs in a cluster.
	effect func(ctx context.Context, hub client.Reader) string
}

func (t *target) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&t.selector, "selector", "l", "", "clusters with these labels, in the place of names")
	flags.StringVar(&t.dryRun, "dry-run", "none", "none, server: have the control plane check it, or client: only say what would be done")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	if err := cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server", "client"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it was defined above
	}
}

// run changes the taints of the clusters. It writes nothing unless all of them exist.
func (t *target) run(cmd *cobra.Command, names []string, e edit) error {
	if err := t.wrong(names); err != nil {
		return command.Usage(err)
	}
	hub, err := t.fleet.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	clusters, err := t.clusters(cmd.Context(), hub, names)
	if err != nil {
		return fleet.Describe(err)
	}
	lines, err := t.foretold(cmd.Context(), hub, clusters, e)
	if err != nil {
		return err
	}
	if t.effect != nil {
		e.done += "; " + t.effect(cmd.Context(), hub)
	}
	var faults []error
	for i := range clusters {
		changed, err := t.change(cmd.Context(), hub, &clusters[i], e)
		if err != nil {
			faults = append(faults, fmt.Errorf("cluster %s: %w", clusters[i].Name, fleet.Describe(err)))
			continue
		}
		what := e.already
		if changed {
			what = e.done + t.suffix()
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "cluster/%s %s\n", clusters[i].Name, what); err != nil {
			return err
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), line); err != nil {
			return err
		}
	}
	if len(faults) > 0 || t.then == nil {
		return errors.Join(faults...)
	}
	done := make([]string, len(clusters))
	for i := range clusters {
		done[i] = clusters[i].Name
	}
	return fleet.Describe(t.then(cmd, hub, done))
}

// foretold returns what becomes of the clusters that e changes. It returns an error if e cannot be applied to all of the clusters.
func (t *target) foretold(ctx context.Context, hub client.Reader, clusters []clusterv1alpha1.Cluster, e edit) ([]string, error) {
	changed := map[string][]corev1.Taint{}
	for i := range clusters {
		after, err := e.apply(clusters[i].Spec.Taints)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", clusters[i].Name, err)
		}
		if !equality.Semantic.DeepEqual(clusters[i].Spec.Taints, after) {
			changed[clusters[i].Name] = after
		}
	}
	if t.predict == nil || len(changed) == 0 {
		return nil, nil
	}
	return t.predict(ctx, hub, changed), nil
}

func (t *target) wrong(names []string) error {
	switch t.dryRun {
	case "true", "":
		t.dryRun = "client"
	case "false":
		t.dryRun = "none"
	}
	switch {
	case !slices.Contains([]string{"none", "client", "server"}, t.dryRun):
		return fmt.Errorf("there is no --dry-run %q: it is none, client or server", t.dryRun)
	case len(names) > 0 && (t.selector != "" || t.all):
		return errors.New("clusters are named, or selected: not both")
	case t.selector != "" && t.all:
		return errors.New("--all leaves nothing to --selector")
	}
	_, err := labels.Parse(t.selector)
	return err
}

func (t *target) suffix() string {
	switch t.dryRun {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	default:
		return ""
	}
}

// clusters reads the selected clusters.
func (t *target) clusters(ctx context.Context, hub client.Reader, names []string) ([]clusterv1alpha1.Cluster, error) {
	if len(names) == 0 {
		selected, err := labels.Parse(t.selector)
		if err != nil {
			return nil, err
		}
		list := &clusterv1alpha1.ClusterList{}
		if err := hub.List(ctx, list, client.MatchingLabelsSelector{Selector: selected}); err != nil {
			return nil, err
		}
		if len(list.Items) == 0 {
			return nil, errors.New("no cluster is selected: flotilla get clusters --show-labels lists them")
		}
		return list.Items, nil
	}
	out := make([]clusterv1alpha1.Cluster, 0, len(names))
	for _, name := range names {
		if slices.ContainsFunc(out, func(c clusterv1alpha1.Cluster) bool { return c.Name == name }) {
			continue
		}
		cluster := clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, fleet.NoCluster(ctx, hub, name)
			}
			return nil, err
		}
		out = append(out, cluster)
	}
	return out, nil
}

// tries is how often a cluster is read again when its taints change meanwhile.
const tries = 10

// change applies e to the taints of a cluster, and reports whether that changed anything. It keeps
// concurrent changes by others.
func (t *target) change(ctx context.Context, hub client.Client, cluster *clusterv1alpha1.Cluster, e edit) (bool, error) {
	for range tries {
		before := cluster.Spec.Taints
		after, err := e.apply(before)
		if err != nil {
			return false, err
		}
		if equality.Semantic.DeepEqual(before, after) {
			return false, nil
		}
		if t.dryRun == "client" {
			return true, nil
		}
		written := cluster.DeepCopy()
		err = t.patch(ctx, hub, written, before, after)
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return true, err
		}
		if err := hub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return false, err
		}
		if equality.Semantic.DeepEqual(before, cluster.Spec.Taints) && apierrors.IsInvalid(err) {
			return false, err // not because of a concurrent change
		}
	}
	return false, errors.New("its taints are changed all the time: try again")
}

// patch writes taints if they have not changed meanwhile.
func (t *target) patch(ctx context.Context, hub client.Client, cluster *clusterv1alpha1.Cluster, before, after []corev1.Taint) error {
	const path = "/spec/taints"
	var was any // of a list that is not there
	if len(before) > 0 {
		was = before
	}
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": path, "value": was},
		{"op": "add", "path": path, "value": after},
	})
	if err != nil {
		return err
	}
	opts := []client.PatchOption{client.FieldOwner("flotilla")}
	if t.dryRun == "server" {
		opts = append(opts, client.DryRunAll)
	}
	return hub.Patch(ctx, cluster, client.RawPatch(types.JSONPatchType, data), opts...)
}
