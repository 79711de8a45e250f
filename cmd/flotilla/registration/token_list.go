package registration

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// tokenFormats are the values of -o.
var tokenFormats = []string{"json", "yaml", "name"}

func newTokenList(f *fleet.Flags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tokens by which clusters register",
		Long:    `List the bootstrap tokens, by their public part: a token itself is shown by create alone.`,
		Example: `  flotilla token list
  flotilla token list -o json`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Output(output, tokenFormats...); err != nil {
				return err
			}
			hub, err := hubOf(cmd.Context(), f)
			if err != nil {
				return err
			}
			all, err := token.List(cmd.Context(), hub)
			if err != nil {
				return fleet.Describe(err)
			}
			return printTokens(cmd.OutOrStdout(), all, output, time.Now())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "how to print: "+strings.Join(tokenFormats, ", ")+"; default is text")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(tokenFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// listedToken is a token in the output for programs.
type listedToken struct {
	// ID is the public part, which token delete takes.
	ID string `json:"id"`
	// Expires is when it expires; nil means never. Expired is true if it has.
	Expires *time.Time `json:"expires,omitempty"`
	Expired bool       `json:"expired,omitempty"`
	// Used is true if it was usable only once and has been used.
	Used        bool     `json:"used,omitempty"`
	Usages      []string `json:"usages,omitempty"`
	Description string   `json:"description,omitempty"`
	Groups      []string `json:"groups,omitempty"`
}

// printTokens writes tokens in a format; empty is a table.
func printTokens(out io.Writer, all []token.Info, format string, now time.Time) error {
	var content []byte
	var err error
	switch format {
	case "json":
		content, err = json.MarshalIndent(listTokens(all, now), "", "  ")
		content = append(content, '\n')
	case "yaml":
		content, err = yaml.Marshal(listTokens(all, now))
	case "name": // as token delete takes them
		for _, info := range all {
			content = fmt.Appendln(content, info.ID)
		}
	default:
		return tokenTable(out, all, now)
	}
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}

func listTokens(all []token.Info, now time.Time) any {
	items := make([]listedToken, len(all))
	for i, info := range all {
		items[i] = listedToken{ID: info.ID, Used: info.Used, Usages: info.Usages, Description: info.Description, Groups: info.Groups}
		if !info.Expires.IsZero() {
			at := info.Expires.UTC()
			items[i].Expires, items[i].Expired = &at, !at.After(now)
		}
	}
	return struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Items      []listedToken `json:"items"`
	}{"cli.flotilla.io/v1alpha1", "TokenList", items}
}

func tokenTable(out io.Writer, all []token.Info, now time.Time) error {
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

// plain replaces the control characters in a text by spaces.
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
