package codeowners

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is that of a forge, by whose rules a file is written.
type Kind string

// Kinds of forges, as Providers name them.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// Owners own a file. Both are empty for a file that nobody owns, or only people who are not named by a login.
type Owners struct {
	// Users are logins, and Teams organization/team, or groups of GitLab. Both are sorted.
	Users, Teams []string
}

// rule is a line of a file.
type rule struct {
	fits   func(path string) bool
	owners Owners
}

// File is a CODEOWNERS file. The zero value names nobody.
type File struct {
	// sections are rules of which the last one that fits counts; in a file of Gitea each rule is its own section.
	sections [][]rule
}

// mostRules is how many lines are read: each is asked for each file of a change.
const mostRules = 10_000

// Parse reads a file. Its error names the line that cannot be read.
func Parse(kind Kind, text string) (File, error) {
	p := parser{kind: kind}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if number > mostRules {
			return File{}, fmt.Errorf("more than %d lines", mostRules)
		}
		words := split(line)
		if len(words) == 0 {
			continue
		}
		if kind == GitLab && p.section(strings.TrimSpace(line)) {
			continue
		}
		if err := p.line(words); err != nil {
			return File{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return File{sections: p.all()}, nil
}

// Of returns who owns a file.
func (f File) Of(path string) Owners {
	var out Owners
	for _, section := range f.sections {
		for _, r := range slices.Backward(section) {
			if r.fits(path) {
				out.Users, out.Teams = append(out.Users, r.owners.Users...), append(out.Teams, r.owners.Teams...)
				break
			}
		}
	}
	return Owners{Users: sorted(out.Users), Teams: sorted(out.Teams)}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// split returns the words of a line without its comment. A backslash keeps the character after it from meaning anything here.
func split(line string) []string {
	var out []string
	word, escaped := "", false
	for _, c := range strings.TrimSpace(line) {
		switch {
		case escaped:
			word, escaped = word+string(c), false
		case c == '\\':
			escaped = true
		case c == '#':
			return appendWord(out, word)
		case c == ' ' || c == '\t':
			out, word = appendWord(out, word), ""
		default:
			word += string(c)
		}
	}
	return appendWord(out, word)
}

func appendWord(words []string, word string) []string {
	if word == "" {
		return words
	}
	return append(words, word)
}

// parser reads lines of one kind.
type parser struct {
	kind Kind
	// names are sections of GitLab in their order, current the one that is read, and fallback its owners of lines without any.
	names    []string
	rules    map[string][]rule
	current  string
	optional bool
	fallback Owners
}

func (p *parser) all() [][]rule {
	var out [][]rule
	for _, name := range p.names {
		out = append(out, p.rules[name])
	}
	return out
}

func (p *parser) add(name string, r rule) {
	if p.rules == nil {
		p.rules = map[string][]rule{}
	}
	if !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
	p.rules[name] = append(p.rules[name], r)
}

// heading is the first line of a section of GitLab: whether nobody has to approve, its name, how many have to, and its owners.
var heading = regexp.MustCompile(`^(\^?)\[([^\]]+)\](?:\[[0-9]+\])?((?:\s.*)?)$`)

// section reports whether a line begins a section.
func (p *parser) section(line string) bool {
	found := heading.FindStringSubmatch(line)
	if found == nil {
		return false
	}
	p.optional, p.current, p.fallback = found[1] != "", strings.ToLower(found[2]), p.ownersOf(split(found[3]))
	return true
}

// line reads a line that has words.
func (p *parser) line(words []string) error {
	if p.kind == Gitea {
		return p.regular(words)
	}
	if p.optional {
		return nil
	}
	pattern, owners := words[0], p.ownersOf(words[1:])
	if p.kind == GitLab && len(words) == 1 {
		owners = p.fallback
	}
	if excluded, is := strings.CutPrefix(pattern, "!"); is && p.kind == GitLab {
		pattern, owners = excluded, Owners{}
	}
	expression, err := regexp.Compile(p.glob(pattern))
	if err != nil {
		return fmt.Errorf("the path %s: %w", pattern, err)
	}
	p.add(p.current, rule{expression.MatchString, owners})
	return nil
}

// regular reads a line of Gitea. A line without owners is none there.
func (p *parser) regular(words []string) error {
	if len(words) < 2 {
		return nil
	}
	pattern, negative := strings.CutPrefix(words[0], "!")
	expression, err := regexp.Compile("^(?:" + strings.TrimPrefix(pattern, "/") + ")$")
	if err != nil {
		return fmt.Errorf("the path %s: %w", pattern, err)
	}
	fits := func(path string) bool { return expression.MatchString(path) != negative }
	p.add(fmt.Sprint(len(p.names)), rule{fits, p.ownersOf(words[1:])})
	return nil
}

// ownersOf returns those who are named by login or team. At GitLab, a name without a slash may be either.
func (p *parser) ownersOf(words []string) Owners {
	var out Owners
	for _, word := range words {
		name, is := strings.CutPrefix(word, "@")
		if p.kind == Gitea && !strings.Contains(word, "@") {
			name, is = word, true
		}
		if !is || name == "" || strings.Contains(name, "@") { // an address of mail, or a role of GitLab
			continue
		}
		team := strings.Contains(name, "/")
		if !team {
			out.Users = append(out.Users, name)
		}
		if team || p.kind == GitLab {
			out.Teams = append(out.Teams, name)
		}
	}
	return out
}

// glob returns the expression of a path as in .gitignore.
func (p *parser) glob(pattern string) string {
	inside := strings.Trim(pattern, "/")
	anchored := strings.HasPrefix(pattern, "/") || p.kind == GitHub && strings.Contains(inside, "/")
	var out strings.Builder
	out.WriteString("^")
	if !anchored {
		out.WriteString("(?:.*/)?")
	}
	for rest := inside; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			out.WriteString(".*")
			rest = rest[2:]
		case rest[0] == '*':
			out.WriteString("[^/]*")
			rest = rest[1:]
		case rest[0] == '?':
			out.WriteString("[^/]")
			rest = rest[1:]
		default:
			out.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		}
	}
	switch {
	case strings.HasSuffix(pattern, "/") && inside == "":
		out.WriteString(".*")
	case strings.HasSuffix(pattern, "/"):
		out.WriteString("/.*")
	case strings.HasSuffix(pattern, "/*"): // the files of a folder, and not those of its folders
	default:
		out.WriteString("(?:/.*)?")
	}
	return out.String() + "$"
}
