package management

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// edit is a change of taints, with the words for its outcome.
type edit struct {
	set       []corev1.Taint
	unset     []corev1.Taint // an empty Effect means all taints with the key
	overwrite bool

	done, already string
}

// apply returns the changed taints. It returns an error if a taint exists with another value and
// must not be overwritten.
func (e edit) apply(taints []corev1.Taint) ([]corev1.Taint, error) {
	out := slices.Clone(taints)
	for _, gone := range e.unset {
		out = slices.DeleteFunc(out, func(t corev1.Taint) bool {
			return t.Key == gone.Key && (gone.Effect == "" || t.Effect == gone.Effect)
		})
	}
	for _, set := range e.set {
		at := slices.IndexFunc(out, func(t corev1.Taint) bool { return t.MatchTaint(&set) })
		switch {
		case at < 0:
			out = append(out, set)
		case out[at].Value == set.Value:
		case !e.overwrite:
			return nil, fmt.Errorf("has the taint %s already: --overwrite replaces it", out[at].ToString())
		default:
			out[at] = set
		}
	}
	return out, nil
}

func newTaint(f *fleet.Flags) *cobra.Command {
	t := &target{fleet: f}
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "taint clusters NAME... KEY[=VALUE]:EFFECT... KEY[:EFFECT]-...",
		Short: "Set and remove taints of clusters",
		Long: `Set and remove taints of clusters: what does not tolerate them stays away. What runs
there already stays; with NoExecute it is moved if failover is on (flotillad serve --failover=on).
Of what holds data there it is said whether it leaves, and what becomes of the data.

A taint is KEY=VALUE:EFFECT or KEY:EFFECT. With - behind it, it is removed; KEY-
removes all taints with the key.`,
		Example: `  flotilla taint clusters east maintenance=tonight:NoSchedule
  flotilla taint clusters east west maintenance=now:NoExecute --overwrite
  flotilla taint clusters -l region=eu maintenance-
  flotilla taint clusters --all team=a:NoSchedule --dry-run=server`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, e, err := parse(args)
			if err == nil && len(names) == 0 && t.selector == "" && !t.all {
				err = errors.New("NAME is missing: name clusters, or select them with --selector or --all")
			}
			if err != nil {
				return command.Usage(err)
			}
			e.overwrite = overwrite
			if e.moves() {
				t.predict = func(ctx context.Context, hub client.Reader, taints map[string][]corev1.Taint) []string {
					return draining.Predict(ctx, hub, taints, clock.RealClock{}.Now())
				}
				t.effect = draining.Effect
			}
			return t.run(cmd, names, e)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"clusters"}, cobra.ShellCompDirectiveNoFileComp
			}
			return f.CompleteClusters(cmd, args, word)
		},
	}
	t.addFlags(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace taints of the same key and effect that have another value")
	cmd.Flags().BoolVar(&t.all, "all", false, "all clusters")
	return cmd
}

// kinds are the accepted words for the kind Cluster.
var kinds = []string{"cluster", "clusters", "clusters.cluster.karmada.io", "cluster.cluster.karmada.io"}

// parse separates the arguments into names and taints.
func parse(args []string) (names []string, e edit, err error) {
	if len(args) == 0 {
		return nil, e, errors.New("what to taint is missing: taint clusters NAME... KEY=VALUE:EFFECT...")
	}
	kind, name, joined := strings.Cut(args[0], "/")
	if !slices.Contains(kinds, strings.ToLower(kind)) {
		return nil, e, fmt.Errorf("%q is not clusters: taint clusters NAME... KEY=VALUE:EFFECT...", args[0])
	}
	if joined {
		names = append(names, name)
	}
	for _, arg := range args[1:] {
		switch {
		case strings.ContainsAny(arg, "=:"), strings.HasSuffix(arg, "-"):
			if err := e.add(arg); err != nil {
				return nil, e, fmt.Errorf("taint %q: %w", arg, err)
			}
		case len(e.set)+len(e.unset) > 0:
			return nil, e, fmt.Errorf("%q is no taint, and names of clusters come first", arg)
		default:
			names = append(names, arg)
		}
	}
	if len(e.set)+len(e.unset) == 0 {
		return nil, e, errors.New("a taint is missing: KEY=VALUE:EFFECT sets one, KEY:EFFECT- removes it")
	}
	return names, e, e.check()
}

// add reads one taint.
func (e *edit) add(arg string) error {
	text, removes := strings.CutSuffix(arg, "-")
	pair, effect, hasEffect := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%q is no key: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("%q is no value: %s", value, strings.Join(wrong, "; "))
	}
	switch {
	case !hasEffect && !removes:
		return errors.New("the effect is missing: it is NoSchedule or NoExecute")
	case hasEffect && taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute:
		return fmt.Errorf("%q is no effect of a cluster's taint: it is NoSchedule or NoExecute", effect)
	case removes:
		e.unset = append(e.unset, taint)
	default:
		e.set = append(e.set, taint)
	}
	return nil
}

// check returns an error if the taints contradict each other, and sets the words for the outcome.
func (e *edit) check() error {
	for i, set := range e.set {
		same := func(t corev1.Taint) bool { return t.Key == set.Key && (t.Effect == "" || t.Effect == set.Effect) }
		if slices.ContainsFunc(e.set[:i], same) || slices.ContainsFunc(e.unset, same) {
			return fmt.Errorf("%s:%s is named twice", set.Key, set.Effect)
		}
	}
	e.done, e.already = "modified", "already as it should be"
	switch {
	case len(e.unset) == 0:
		e.done, e.already = "tainted", "already tainted"
	case len(e.set) == 0:
		e.done, e.already = "untainted", "already untainted"
	}
	return nil
}

// moves reports whether any of the taints moves what runs in a cluster.
func (e *edit) moves() bool {
	return slices.ContainsFunc(e.set, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
}
