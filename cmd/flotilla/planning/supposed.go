package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
	"github.com/flotilla-io/flotilla/policies/whatif"
	"github.com/flotilla-io/flotilla/reconciler/forecast/supposition"
)

// suppose has events happen to the fleet.
func (w *world) suppose(ctx context.Context, events []whatif.Event) error {
	if len(events) == 0 {
		return nil
	}
	for i, e := range events {
		if e.File() == "" {
			continue
		}
		c, err := manifest(e.File())
		if err != nil {
			return command.Usage(err)
		}
		events[i] = e.Joining(c)
	}
	if w.hub != nil {
		if err := w.snapshot.ReadTaints(ctx, w.hub); err != nil {
			return err
		}
	}
	var err error
	w.supposed, err = supposition.Of(w.fleet, events, w.snapshot.Policies.Taints)
	if unknown := (*whatif.UnknownError)(nil); errors.As(err, &unknown) {
		return command.Usage(fleet.NoClusterAmong(unknown.Name, unknown.Clusters))
	}
	if err != nil {
		return command.Usage(err)
	}
	w.fleet = w.supposed.Before(w.fleet)
	if w.hub == nil {
		w.fleet.Scheduling.Failover.State = false // a file has no status of what runs
	}
	return nil
}

// mostManifest is how large the manifest of a cluster may be, in bytes.
const mostManifest = 10 << 20

// manifest reads the Cluster of a file.
func manifest(path string) (*clusterv1alpha1.Cluster, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > mostManifest:
		return nil, fmt.Errorf("%s is no file with the manifest of a Cluster", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &clusterv1alpha1.Cluster{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		return nil, fmt.Errorf("%s is no manifest of a Cluster: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if c.Kind != clusterv1alpha1.ResourceKindCluster || c.GroupVersionKind().Group != clusterv1alpha1.GroupName {
		return nil, fmt.Errorf("%s is no manifest of a Cluster, but of a %q of %q", path, c.Kind, c.APIVersion)
	}
	if wrong := syntax.ClusterName(c.Name, field.NewPath("metadata", "name")); len(wrong) > 0 {
		return nil, fmt.Errorf("%s: %w", path, wrong[0])
	}
	return c, nil
}

// completeEvent offers names of clusters, and after one what may happen to it.
func (f *planFlags) completeEvent(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	given := ""
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		given, word = word[:i+1], word[i+1:]
	}
	name, verb, named := strings.Cut(word, ":")
	if named && name == "add" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var offers []string
	if named {
		for _, v := range whatif.Verbs() {
			if strings.HasPrefix(v, verb) {
				offers = append(offers, given+name+":"+v)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	clusters, _ := f.hub.CompleteClusters(cmd, args, word)
	for _, c := range append(clusters, "add") {
		if strings.HasPrefix(c, word) {
			offers = append(offers, given+c+":")
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
