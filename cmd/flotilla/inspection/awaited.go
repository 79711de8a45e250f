package inspection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flotilla-io/flotilla/internal/registration"
)

// allClusters reports whether the call lists all clusters of the fleet for people.
func (g *getter) allClusters() bool {
	plain := g.PrintFlags.OutputFormat == nil || slices.Contains([]string{"", "wide"}, *g.PrintFlags.OutputFormat)
	kinds := []string{"cluster", "clusters", "clusters.cluster.karmada.io"}
	return plain && len(g.args) == 1 && slices.Contains(kinds, strings.ToLower(g.args[0])) && g.LabelSelector == "" && g.FieldSelector == ""
}

// awaited prints the clusters that were registered and have never reported. It ignores errors,
// among them missing rights, because the list itself was already printed.
func (g *getter) awaited(ctx context.Context) {
	hub, err := g.fleet.Client()
	if err != nil {
		return
	}
	all, err := registration.AwaitedClusters(ctx, hub)
	if err != nil {
		return
	}
	for _, a := range all {
		_, _ = fmt.Fprintln(g.ErrOut, neverHeard(a, time.Now()))
	}
}

// neverHeard returns the line for one of them.
func neverHeard(a registration.Awaited, now time.Time) string {
	return fmt.Sprintf("cluster %s was registered %s ago and never heard of: flotilla status says what to do", a.Cluster, duration.HumanDuration(max(now.Sub(a.Since), 0)))
}
