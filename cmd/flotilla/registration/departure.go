package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/join"
)

// leftovers say what stays in a cluster that has left.
type leftovers struct {
	departure *join.Departure
	// member, which may be nil, is asked what is there that the hub with this id has applied.
	member *rest.Config
	hub    string
	// pull says that an agent should have removed it.
	pull bool
}

// mostNamed is how many objects are named that stay.
const mostNamed = 10

// lines say what stays, and what to do about it; none where nothing does.
func (l *leftovers) lines(ctx context.Context) []string {
	name := l.departure.Name
	titles, seen := l.find(ctx)
	switch {
	case len(titles) == 0:
		return nil
	case l.departure.Taken():
		return []string{fmt.Sprintf("what the fleet ran in cluster %s stays there: the cluster is another control plane's, which may have taken it over", name)}
	}
	known := ""
	if !seen {
		known = ", as far as the control plane knows"
	}
	by, command := "the control plane", "unjoin"
	if l.pull {
		by, command = "its agent", "unregister"
	}
	out := []string{fmt.Sprintf("%s did not remove what the fleet ran in cluster %s; %d objects stay there%s:", by, name, len(titles), known)}
	for _, title := range titles[:min(len(titles), mostNamed)] {
		out = append(out, "  "+title)
	}
	if more := len(titles) - mostNamed; more > 0 {
		out = append(out, fmt.Sprintf("  and %d more", more))
	}
	out = append(out, "kubectl delete KIND NAME [--namespace NAMESPACE] removes each of them there; all have the label karmada.io/managed=true")
	if l.member == nil {
		out = append(out, fmt.Sprintf("flotilla %s %s --cluster-kubeconfig FILE says which are really there, and takes out what makes the cluster a member", command, name))
	}
	return out
}

// warn says it on standard error.
func (l *leftovers) warn(cmd *cobra.Command) error {
	lines := l.lines(cmd.Context())
	if len(lines) == 0 {
		return nil
	}
	return warn(cmd.ErrOrStderr(), errors.New(strings.Join(lines, "\n")))
}

// goesOn returns an error that ended the wait. Who has enough of waiting is told that the
// cluster leaves all the same.
func goesOn(cmd *cobra.Command, d *join.Departure, err error) error {
	if interrupted(cmd.Context()) && d.Begun() {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "cluster %s goes on leaving: run the same again to wait on, and to hear what stays there\n", d.Name)
	}
	return err
}

// find names what stays: what is seen there, or what is known to have been let go.
func (l *leftovers) find(ctx context.Context) (titles []string, seen bool) {
	if l.member == nil || l.hub == "" {
		return l.departure.Left(), false
	}
	titles, all, err := join.Stays(ctx, l.member, l.departure.Name, l.hub)
	if err != nil {
		return l.departure.Left(), false
	}
	return titles, all
}

// tells prints lines.
func tells(out io.Writer) func(string) {
	return func(line string) { _, _ = fmt.Fprintln(out, line) }
}

// answers asks a member through the control plane whether it is there; nil if that is of
// no use.
func answers(f *fleet.Flags, cluster string) func(context.Context) error {
	cfg, err := f.Config()
	if err != nil {
		return nil
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil
	}
	path := "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster + "/proxy/version"
	return func(ctx context.Context) error {
		return kinds.RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error()
	}
}
