package overview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/offspring"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/presence"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/record"
	"github.com/flotilla-io/flotilla/internal/command"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	flags  *fleet.Flags
	clock  clock.Clock
	scope  fleet.Scope
	output output
	about  string
	types  []string
	all    bool
	watch  bool
	named  bool
}

// noObject refuses arguments: the object that Events are about is in --for.
func noObject(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	about := "KIND/NAME"
	if strings.Contains(args[0], "/") {
		about = args[0]
	}
	return command.Usage(fmt.Errorf("%q is too much: flotilla events --for %s", args[0], about))
}

func newEventsCommand(f *fleet.Flags, now clock.Clock) *cobra.Command {
	o := &eventsOptions{flags: f, clock: now}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show Events of the control plane and of members, by time",
		Long: `Show Events of the control plane and of all members, by time. With --for they are
about one object: with a Kustomization also about its source, with a template also
about its binding and about what it owns in the members, such as Pods.`,
		Example: `  flotilla events -n shop
  flotilla events --for deployment/web -n shop --types Warning
  flotilla events -A -w -C east,west`,
		Args: noObject,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers, fleet.ScopeAll)
	flags := cmd.Flags()
	flags.Lookup("operation-scope").Usage = "where to look: karmada, members or all; default is all, or members with --clusters"
	flags.StringVar(&o.about, "for", "", "only about this object: KIND/NAME")
	_ = cmd.RegisterFlagCompletionFunc("for", f.CompleteReference())
	flags.StringSliceVar(&o.types, "types", nil, "only of these types: Normal, Warning")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "of all namespaces")
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on with what happens, until Ctrl-C")
	o.output.addTo(cmd, asJSON, asYAML)
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.named = flags.Changed("clusters"); !o.named && !flags.Changed("operation-scope") {
			if err := flags.Set("operation-scope", fleet.ScopeAll); err != nil {
				return err
			}
		}
		if err := o.valid(); err != nil {
			return command.Usage(err)
		}
		return check(cmd, args)
	}
	return cmd
}

func (o *eventsOptions) valid() error {
	for _, t := range o.types {
		if !strings.EqualFold(t, corev1.EventTypeNormal) && !strings.EqualFold(t, corev1.EventTypeWarning) {
			return fmt.Errorf("there are no Events of type %q: it is Normal or Warning", t)
		}
	}
	switch {
	case o.watch && o.output.format != asText:
		return errors.New("-w prints text only: leave -o out")
	case o.all && o.flags.Namespace != "":
		return fmt.Errorf("-A and -n %s: choose one", o.flags.Namespace)
	case o.all && o.about != "":
		return errors.New("--for means an object in one namespace: leave -A out")
	}
	return nil
}

func (o *eventsOptions) run(ctx context.Context, out, warnings io.Writer) error {
	servers, err := o.scope.Servers(ctx, o.flags)
	if apierrors.IsForbidden(err) && o.scope.Everywhere() {
		_, _ = fmt.Fprintln(warnings, "warning: you may not list clusters: these are the control plane's Events alone; --clusters asks those that you name")
		servers, err = []string{fleet.Hub}, nil
	}
	if err != nil {
		return err
	}
	search, err := o.search()
	if err != nil {
		return fleet.Describe(err)
	}
	answers := fleet.Each(ctx, servers, search.list)
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, failed := []record.Entry{}, 0
	nowhere, missing := true, true
	for _, answer := range answers {
		if answer.Err != nil {
			if failed++; len(answers) == 1 {
				break // it is what the command ends with
			}
			_, _ = fmt.Fprintf(warnings, "warning: %s was not looked at: %v\n", answer.Cluster, fleet.Describe(answer.Err))
			continue
		}
		entries = append(entries, answer.Value.entries...)
		nowhere, missing = nowhere && answer.Value.nowhere, missing && answer.Value.missing
	}
	if failed == 1 && len(answers) == 1 {
		if o.named && fleet.Denied(answers[0].Err) {
			return fmt.Errorf("%w; -s karmada instead of --clusters shows what the control plane says", fleet.Describe(answers[0].Err))
		}
		return fleet.Describe(answers[0].Err)
	}
	if failed > 0 && (o.named || failed == len(answers)) {
		return fmt.Errorf("%d of %d did not answer: see above", failed, len(answers))
	}
	if nowhere {
		return fmt.Errorf("there is no namespace %s: flotilla get namespaces lists those that there are", search.namespace)
	}
	search.gone = missing
	record.Sort(entries)
	if err := o.print(out, entries, search); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, out, warnings, search, answers)
}

func (o *eventsOptions) print(out io.Writer, entries []record.Entry, s *search) error {
	list := struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Items      []record.Entry `json:"items"`
	}{"cli.flotilla.io/v1alpha1", "FleetEvents", entries}
	if done, err := o.output.structured(out, list); done {
		return err
	}
	if len(entries) == 0 && !o.watch {
		where := "in any namespace"
		if s.namespace != "" {
			where = "in namespace " + s.namespace
		}
		if s.gone {
			where += fmt.Sprintf(", and there is no %s %s", s.kind, s.name)
		}
		_, err := fmt.Fprintf(out, "There are no such Events %s.\n", where)
		return err
	}
	return record.Text(out, entries, record.TextOptions{Now: o.clock.Now(), Namespaces: o.all})
}

// search selects the Events to show.
type search struct {
	flags     *fleet.Flags
	namespace string // empty for all
	types     []string
	word      string // the kind as the user wrote it
	kind      string // empty for any object
	name      string
	gone      bool // nobody that answered has the object, or an Event of it
}

func (o *eventsOptions) search() (*search, error) {
	s := &search{flags: o.flags, types: o.types}
	if !o.all {
		var err error
		if s.namespace, _, err = o.flags.Factory().ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, err
		}
	}
	if o.about == "" {
		return s, nil
	}
	word, name, err := object([]string{o.about})
	if err != nil {
		return nil, err
	}
	s.word, s.kind, s.name = word, presence.Kind(o.flags.Factory(), word), name
	return s, nil
}

// found is what one server has.
type found struct {
	entries []record.Entry
	filter  record.Filter
	// version is where a watch continues.
	version string
	// nowhere and missing are true if the namespace, and the object of --for, are not on the
	// server, which has no Events about them either.
	nowhere, missing bool
}

// list lists the Events of one server.
func (s *search) list(ctx context.Context, server string) (found, error) {
	set, err := s.flags.Server(server, fleet.Timeout).KubernetesClientSet()
	if err != nil {
		return found{}, err
	}
	out := found{filter: record.Filter{Types: s.types}}
	if s.kind != "" {
		if out.filter.Objects, err = s.objects(ctx, set, server); err != nil {
			return found{}, err
		}
	}
	for next := ""; ; {
		page, err := set.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{Limit: listing.PageSize, Continue: next})
		if err != nil {
			return found{}, err
		}
		for i := range page.Items {
			if e := record.Of(server, &page.Items[i]); out.filter.Has(e) {
				out.entries = append(out.entries, e)
			}
		}
		out.version = page.ResourceVersion
		if next = page.Continue; next == "" {
			out.nowhere = len(out.entries) == 0 && !presence.Namespace(ctx, set, s.namespace)
			out.missing = len(out.entries) == 0 && s.kind != "" && !presence.Object(ctx, s.flags.Server(server, fleet.Timeout), s.word, s.namespace, s.name)
			return out, nil
		}
	}
}

// objects returns all objects that --for selects on a server, as "Kind/name".
func (s *search) objects(ctx context.Context, set kubernetes.Interface, server string) (map[string]bool, error) {
	out := map[string]bool{s.kind + "/" + s.name: true}
	if server != fleet.Hub {
		family, err := offspring.Of(ctx, set, s.namespace, s.kind, s.name)
		if apierrors.IsNotFound(err) { // Events outlive their object
			err = nil
		}
		return family.Names, err
	}
	if s.kind == kustomizev1.KustomizationKind {
		return out, s.source(ctx, out)
	}
	out[workv1alpha2.ResourceKindResourceBinding+"/"+workv1alpha2.BindingName(s.kind, s.name)] = true
	return out, nil
}

// source adds the source of a Kustomization in the same namespace.
func (s *search) source(ctx context.Context, out map[string]bool) error {
	hub, err := listing.Hub(s.flags)
	if err != nil {
		return err
	}
	var ks kustomizev1.Kustomization
	if err := hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, &ks); err != nil {
		return client.IgnoreNotFound(err) // Events outlive their object, and are shown then, too
	}
	ref := ks.Spec.SourceRef
	if ref.Namespace == "" || ref.Namespace == s.namespace {
		out[ref.Kind+"/"+ref.Name] = true
	}
	return nil
}
