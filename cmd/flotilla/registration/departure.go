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
)

// leftovers say what stays in a cluster that has left.
type leftovers struct {
	departure *join.Departure
	// member, which may be nil, is asked what is there that the hub with this id has applied.
	member *rest.Config
	hub    string
	// pull says that an agent should have removed it.
	pull bool
	// kept names what is to stay there although the rest goes, and why.
	kept []string
	// stays asks the member, in place of join.Stays; nil is that.
	stays func(context.Context) (join.Remains, error)
}

// mostNamed is how many objects are named that stay.
const mostNamed = 10

// lines say what stays, and what to do about it; none where nothing does. What goes by itself
// is waited for.
func (l *leftovers) lines(ctx context.Context) []string {
	name := l.departure.Name
	is, seen := l.find(ctx)
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

// predict takes note of what is to stay in the cluster: nobody can ask once it has left. Of one that is
// away all stays.
func (l *leftovers) predict(will outlook.Outlook) {
	if will.Away == "" {
		l.kept = will.Stays()
	}
}

// inside looks into the member, where there is a way to it; nil where there is none.
func (l *leftovers) inside() (outlook.Inside, error) {
	if l.member == nil {
		return nil, nil
	}
	return outlook.Member(l.departure.Name, l.member)
}

// keeps says what was left in the cluster on purpose.
func (l *leftovers) keeps() []string {
	if len(l.kept) == 0 {
		return nil
	}
	return append([]string{fmt.Sprintf("cluster %s keeps:", l.departure.Name)}, few(l.kept)...)
}

// few lists titles, and how many more there are.
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

// What is being deleted may take some seconds: a namespace empties first.
const (
	goingPoll = time.Second
	mostPolls = 10
)

// pause waits, and returns false where the call ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// going says what goes by itself.
func (l *leftovers) going(titles []string) []string {
	if len(titles) == 0 {
		return nil
	}
	out := fmt.Sprintf("being deleted in cluster %s, and not gone yet: %s", l.departure.Name, strings.Join(titles[:min(len(titles), mostNamed)], ", "))
	if more := len(titles) - mostNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return []string{out}
}

// staying says what stays, and what to do about it.
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

// stay is "1 object stays", and "2 objects stay".
func stay(n int) string {
	if n == 1 {
		return "1 object stays"
	}
	return fmt.Sprintf("%d objects stay", n)
}

// warn says it on standard error.
func (l *leftovers) warn(cmd *cobra.Command) error {
	lines := l.lines(cmd.Context())
	if len(lines) == 0 {
		return nil
	}
	return warn(cmd.ErrOrStderr(), errors.New(strings.Join(lines, "\n")))
}

// goesOn returns an error that ended the wait. Who has enough of waiting is shown that the
// cluster leaves all the same.
func goesOn(cmd *cobra.Command, d *join.Departure, err error) error {
	if interrupted(cmd.Context()) && d.Begun() {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "cluster %s goes on leaving: run the same again to wait on, and to hear what stays there\n", d.Name)
	}
	return err
}

// find returns what is seen to be there, or what is known to have been let go.
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

// reports prints lines.
func reports(out io.Writer) func(string) {
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
