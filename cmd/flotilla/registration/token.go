package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

func newToken(f *fleet.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and delete the tokens by which clusters register",
		Long: `Make, list and delete bootstrap tokens. By a token a cluster gets to know the
control plane, and the control plane the cluster: see flotilla register.`,
		Example: `  flotilla token create --print-register-command
  flotilla token list
  flotilla token delete abcdef`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage(fmt.Errorf("there is no command token %s: there are create, delete and list", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(f), newTokenList(f), newTokenDelete(f))
	return cmd
}

// creation is a call of token create.
type creation struct {
	fleet *fleet.Flags
	opts  token.Options
	taint []string
	ttl   time.Duration
	print string
	// image of the agent in the line for register; empty leaves it to the reader.
	image string
}

// What --print-register-command prints.
const (
	printToken    = "false"
	printRegister = "true"
	printAgent    = "agent"
)

func newTokenCreate(f *fleet.Flags) *cobra.Command {
	c := &creation{fleet: f}
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "Make a token by which clusters register",
		Long: `Make a bootstrap token, and print it. It is shown this once.

A token is good for any new cluster until it ends. With --cluster-name it is good
for that one cluster, once: this is the way to register a cluster anew that is a
member already, and the safer one for all. Whoever has a token can become a cluster
of the fleet and receives what is placed there.

Where a cluster is, its labels and its taints are what policies select it by. Say
them here: what its agent says of itself counts for nothing until an administrator
has said the same.`,
		Example: `  flotilla token create --cluster-name north --cluster-region eu --print-register-command
  flotilla token create --cluster-name south --print-register-command --karmada-agent-image registry.example/flotilla-agent:v1
  flotilla token create --cluster-name edge-7 --print-register-command=agent
  flotilla token create --ttl 2h --description "the new rack"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Exactly("TOKEN")(cmd, args)
			}
			return nil
		},
		RunE: c.run,
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.ttl, "ttl", token.DefaultTTL, "how long the token is good (1s, 2m, 3h); 0 is for ever. With --cluster-name the default is 1h")
	flags.StringSliceVar(&c.opts.Groups, "groups", []string{identity.TokensGroup}, "groups of who comes with the token; they begin with system:bootstrappers:")
	flags.StringSliceVar(&c.opts.Usages, "usages", []string{"signing", "authentication"}, "what the token is for: signing, authentication")
	flags.StringVar(&c.opts.Description, "description", "", "what the token is for, for people")
	flags.StringVar(&c.opts.Cluster, "cluster-name", "", "the only cluster that the token is good for, once")
	flags.StringVar(&c.opts.ClusterID, "cluster-id", "", "UID of the kube-system namespace of that cluster; default is the one that the control plane knows, or any")
	flags.StringVar(&c.opts.Properties.Provider, "cluster-provider", "", "who runs the cluster that registers, for policies to select by")
	flags.StringVar(&c.opts.Properties.Region, "cluster-region", "", "region of the cluster that registers, for policies to select by")
	flags.StringSliceVar(&c.opts.Properties.Zones, "cluster-zones", nil, "zones of the cluster that registers, for policies to select by")
	flags.StringToStringVar(&c.opts.Properties.Labels, "cluster-labels", nil, "labels of the cluster that registers (KEY=VALUE), for policies to select by")
	flags.StringSliceVar(&c.taint, "cluster-taints", nil, "taints of the cluster that registers (KEY=VALUE:EFFECT)")
	flags.StringVar(&c.opts.Properties.ApplyAs, "apply-as", "", "as whom templates are applied in the cluster that registers: "+clusterv1alpha1.ApplyAsAuthor+", as who applied them, as without the flag; or "+clusterv1alpha1.ApplyAsHub+", with all rights")
	flags.StringVar(&c.print, "print-register-command", printToken, "print the whole line to run beside the cluster: with no value that of register, where IMAGE is the image of the agent; with =agent that of flotilla-agent, where KUBECONFIG is the file that leads to the cluster")
	flags.StringVar(&c.image, "karmada-agent-image", "", "image of the agent in the line for register, from a registry that the cluster can pull from")
	flags.Lookup("print-register-command").NoOptDefVal = printRegister
	completeApplyAs(cmd)
	return cmd
}

func (c *creation) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		c.opts.Token = args[0]
	}
	if cmd.Flags().Changed("ttl") {
		c.opts.TTL = &c.ttl
	}
	if c.print != printToken && c.print != printRegister && c.print != printAgent {
		return command.Usage(fmt.Errorf("--print-register-command=%s: it is %s, %s or %s", c.print, printRegister, printAgent, printToken))
	}
	if c.print == printAgent && c.opts.Cluster == "" {
		return command.Usage(errors.New("--cluster-name is missing: the line for flotilla-agent names its cluster"))
	}
	if c.image != "" && c.print != printRegister {
		return command.Usage(errors.New("--karmada-agent-image is for the line of register: it goes with --print-register-command"))
	}
	if err := join.CheckApplyAs(c.opts.Properties.ApplyAs); err != nil {
		return command.Usage(fmt.Errorf("--apply-as: %w", err))
	}
	for _, text := range c.taint {
		taint, err := token.ParseTaint(text)
		if err != nil {
			return command.Usage(err)
		}
		c.opts.Properties.Taints = append(c.opts.Properties.Taints, taint)
	}
	hub, err := c.fleet.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	var line func(token string) string
	if c.print != printToken { // first, so that no token is made that is not shown
		if line, err = c.line(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	made, _, err := token.Create(cmd.Context(), hub, c.opts)
	switch {
	case errors.Is(err, token.ErrInvalid):
		return command.Usage(err)
	case err != nil:
		return fleet.Describe(err)
	}
	if line != nil {
		made = line(made)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), made)
	return err
}

// imageToFillIn stands for the image of the agent in the line for register: none is published.
const imageToFillIn = "IMAGE"

// line returns what makes the line to run beside the cluster of a token.
func (c *creation) line(ctx context.Context, errOut io.Writer) (func(token string) string, error) {
	cfg, err := c.fleet.Config()
	if err != nil {
		return nil, fleet.Describe(err)
	}
	hub, err := readPublished(ctx, cfg)
	if err != nil {
		return nil, err
	}
	here, err := url.Parse(cfg.Host)
	if err != nil || here.Host == "" {
		return nil, fmt.Errorf("the kubeconfig leads to %q, which is no address", cfg.Host)
	}
	hash, address := hub.hash, hub.elsewhere(here.Host)
	if isLoopback(address) {
		_, _ = fmt.Fprintf(errOut, "warning: %s is this machine alone: elsewhere put the address of the control plane in its place, or start flotillad serve with it as --advertise-host\n", address)
	}
	return func(token string) string {
		if c.print == printAgent { // KUBECONFIG is the reader's to fill in: it leads to the member
			return fmt.Sprintf("flotilla-agent --cluster-name %s --hub-endpoint %s --bootstrap-token %s --discovery-token-ca-cert-hash %s --kubeconfig KUBECONFIG", c.opts.Cluster, address, token, hash)
		}
		out := fmt.Sprintf("flotilla register %s --token %s --discovery-token-ca-cert-hash %s", address, token, hash)
		if c.opts.Cluster != "" {
			out += " --cluster-name " + c.opts.Cluster
		}
		return out + " --karmada-agent-image " + cmp.Or(c.image, imageToFillIn)
	}, nil
}

func newTokenList(f *fleet.Flags) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tokens by which clusters register",
		Long:    `List the bootstrap tokens, by their public part: a token itself is shown by create alone.`,
		Args:    command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := f.Client()
			if err != nil {
				return fleet.Describe(err)
			}
			all, err := token.List(cmd.Context(), hub)
			if err != nil {
				return fleet.Describe(err)
			}
			return printTokens(cmd.OutOrStdout(), all, time.Now())
		},
	}
}

func printTokens(out io.Writer, all []token.Info, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "TOKEN ID\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	for _, info := range all {
		left, expires := "<forever>", "<never>"
		if !info.Expires.IsZero() {
			left, expires = duration.ShortHumanDuration(info.Expires.Sub(now)), info.Expires.UTC().Format(time.RFC3339)
		}
		if info.Used {
			left = "<used>"
		} else if !info.Expires.IsZero() && !info.Expires.After(now) {
			left = "<expired>"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", info.ID, left, expires,
			orNone(strings.Join(info.Usages, ",")), orNone(plain(info.Description)), orNone(strings.Join(info.Groups, ",")))
	}
	return table.Flush()
}

// plain keeps text of others on its line, and from doing anything to a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func newTokenDelete(f *fleet.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOKEN...",
		Short: "Delete tokens by which clusters register",
		Long:  `Delete bootstrap tokens, by their public part or whole. Clusters that have registered stay members.`,

		ValidArgsFunction: completeTokens(f),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Exactly("TOKEN")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hub, err := f.Client()
			if err != nil {
				return fleet.Describe(err)
			}
			for _, arg := range args {
				id, err := token.Delete(cmd.Context(), hub, arg)
				switch {
				case errors.Is(err, token.ErrInvalid):
					return command.Usage(err)
				case apierrors.IsNotFound(err):
					return fmt.Errorf("there is no token %s: flotilla token list lists them", id)
				case err != nil:
					return fleet.Describe(err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "bootstrap token %q deleted\n", id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
