package registration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// leftovers reports what stays in a cluster that has left the fleet.
type leftovers struct {
	departure *join.Departure
	// member, which may be nil, is read for what the hub with the id in hub has applied.
	member *rest.Config
	hub    string
	// pull is true if an agent should have removed it.
	pull bool
	// kept lists what stays there on purpose, and why.
	kept []string
	// stays reads the member; nil means join.Stays.
	stays func(context.Context) (join.Remains, error)
}

// mostNamed is how many objects are listed by name.
const mostNamed = 10

// lines returns what stays, and what to do about it; nil if nothing stays. It waits for objects that
// are being deleted.
func (l *leftovers) lines(ctx context.Context) []string {
	name := l.departure.Name
	is, seen := l.find(ctx)
	if report := l.departure.Report; len(is.Going) > 0 && report != nil {
		report(fmt.Sprintf("waiting for what is still being deleted in cluster %s: %s", name, excerpt.Names(is.Going, mostNamed)))
	}
	for i := 0; len(is.Going) > 0 && i < mostPolls && pause(ctx, goingPoll); i++ {
		is, seen = l.find(ctx)
	}
	switch {
	case len(is.Titles) > 0 && l.departure.Taken():
		return []string{fmt.Sprintf("what the fleet ran in cluster %s stays there: the cluster is another control plane's, which may have taken it over", name)}
	case len(is.Titles) > 0:
		return append(l.staying(is.Titles, seen), l.going(is.Going)...)
	default:
		return append(l.keeps(), l.going(is.Going)...)
	}
}

// predict records what will stay in the cluster on purpose, because that cannot be read once the cluster
// has left. It records nothing for a cluster that is away, where everything stays.
func (l *leftovers) predict(will outlook.Outlook) {
	if will.Away == "" {
		l.kept = will.Stays()
	}
}

// inside returns a reader of the member; nil if there is no connection to it.
func (l *leftovers) inside() (outlook.Inside, error) {
	if l.member == nil {
		return nil, nil
	}
	return outlook.Member(l.departure.Name, l.member)
}

// keeps returns what was left in the cluster on purpose.
func (l *leftovers) keeps() []string {
	if len(l.kept) == 0 {
		return nil
	}
	return append([]string{fmt.Sprintf("cluster %s keeps:", l.departure.Name)}, few(l.kept)...)
}

// few lists the first titles, and how many more there are.
func few(titles []string) []string {
	var out []string
	for _, title := range titles[:min(len(titles), mostNamed)] {
		out = append(out, "  "+title)
	}
	if more := len(titles) - mostNamed; more > 0 {
		out = append(out, fmt.Sprintf("  and %d more", more))
	}
	return out
}

// A deletion may take some seconds: a namespace is emptied first.
const (
	goingPoll = time.Second
	mostPolls = 10
)

// pause waits, and returns false if the call ends meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// going returns what is still being deleted.
func (l *leftovers) going(titles []string) []string {
	if len(titles) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("being deleted in cluster %s, and not gone yet: %s", l.departure.Name, excerpt.Names(titles, mostNamed))}
}

// staying returns what stays, and what to do about it.
func (l *leftovers) staying(titles []string, seen bool) []string {
	name := l.departure.Name
	known := ""
	if !seen {
		known = ", as far as the control plane knows"
	}
	by, command := "the control plane", "unjoin"
	if l.pull {
		by, command = "its agent", "unregister"
	}
	out := append([]string{fmt.Sprintf("%s did not remove what the fleet ran in cluster %s; %s there%s:", by, name, stay(len(titles)), known)}, few(titles)...)
	out = append(out, "kubectl delete KIND NAME [--namespace NAMESPACE] removes each of them there; all have the label karmada.io/managed=true")
	if l.member == nil {
		out = append(out, fmt.Sprintf("flotilla %s %s --cluster-kubeconfig FILE says which are really there, and takes out what makes the cluster a member", command, name))
	}
	return out
}

// stay returns "1 object stays", or "2 objects stay".
func stay(n int) string {
	if n == 1 {
		return "1 object stays"
	}
	return fmt.Sprintf("%d objects stay", n)
}

// warn prints the lines as a warning on standard error.
func (l *leftovers) warn(cmd *cobra.Command) error {
	lines := l.lines(cmd.Context())
	if len(lines) == 0 {
		return nil
	}
	return warn(cmd.ErrOrStderr(), errors.New(strings.Join(lines, "\n")))
}

// goesOn returns the error that ended the wait. If the user interrupted it, goesOn prints that the
// cluster leaves all the same.
func goesOn(cmd *cobra.Command, d *join.Departure, err error) error {
	if interrupted(cmd.Context()) && d.Begun() {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "cluster %s goes on leaving: run the same again to wait on, and to hear what stays there\n", d.Name)
	}
	return err
}

// find returns what the member still has, or, if it cannot be read, what the control plane has
// released there; seen is false then.
func (l *leftovers) find(ctx context.Context) (is join.Remains, seen bool) {
	if l.member == nil || l.hub == "" {
		return join.Remains{Titles: l.departure.Left()}, false
	}
	ask := l.stays
	if ask == nil {
		ask = func(ctx context.Context) (join.Remains, error) {
			return join.Stays(ctx, l.member, l.departure.Name, l.hub)
		}
	}
	is, err := ask(ctx)
	if err != nil {
		return join.Remains{Titles: l.departure.Left()}, false
	}
	return is, is.All
}

// reports returns a function that prints lines.
func reports(out io.Writer) func(string) {
	return func(line string) { _, _ = fmt.Fprintln(out, line) }
}

// asking returns the first line of a command that takes a cluster out: a member that is gone answers
// nothing for seconds. member is the connection to it; nil means through the control plane.
func asking(cluster string, member *rest.Config) string {
	way := "through the control plane"
	if member != nil {
		way = "at " + member.Host
	}
	return fmt.Sprintf("asking cluster %s, %s, what the fleet has there", cluster, way)
}

// answers returns a function that checks, through the control plane, whether a member answers; nil if
// there is no connection to the control plane.
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
