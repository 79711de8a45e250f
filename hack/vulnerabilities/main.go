package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// errAway says that the database of vulnerabilities did not answer.
var errAway = errors.New("the database of vulnerabilities cannot be reached")

func main() {
	scanner := flag.String("scanner", "", "the built govulncheck")
	file := flag.String("exceptions", "", "YAML file of exceptions")
	gomod := flag.String("gomod", "go.mod", "go.mod whose modules in folders are looked up, too")
	db := flag.String("db", "", "another database than the scanner's own, as a file: or https: URL")
	flag.Parse()
	err := run(context.Background(), options{scanner: *scanner, db: *db, exceptions: *file, gomod: *gomod, today: time.Now(), out: os.Stdout}, flag.Args())
	switch {
	case errors.Is(err, errAway):
		fmt.Fprintln(os.Stderr, "vulnerabilities: NOTHING WAS CHECKED:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

type options struct {
	scanner    string
	db         string // empty: the scanner's own
	exceptions string
	gomod      string
	today      time.Time
	out        io.Writer
}

// run scans programs and looks forks up, and errs if they have what is not excepted.
func run(ctx context.Context, o options, programs []string) error {
	content, err := os.ReadFile(o.exceptions)
	if err != nil {
		return err
	}
	list, err := parseExceptions(content)
	if err != nil {
		return fmt.Errorf("%s: %w", o.exceptions, err)
	}
	var all []vulnerability
	if content, err = os.ReadFile(o.gomod); err != nil {
		return err
	}
	forks, err := forksOf(content)
	if err != nil {
		return fmt.Errorf("%s: %w", o.gomod, err)
	}
	for _, f := range forks {
		found, err := o.resolve(ctx, f)
		if err != nil {
			return err
		}
		all = merge(all, found)
	}
	for _, program := range programs {
		output, err := o.scan(ctx, "-mode=binary", program)
		if err != nil {
			return err
		}
		found, err := parse(bytes.NewReader(output), filepath.Base(program))
		if err != nil {
			return fmt.Errorf("what the scanner says of %s: %w", program, err)
		}
		all = merge(all, found)
	}
	v := judge(all, list, o.today)
	if _, err := io.WriteString(o.out, v.String()); err != nil {
		return err
	}
	if len(v.open) > 0 {
		return fmt.Errorf("%d known vulnerabilities: update what has them, or state in %s why they do not reach us", len(v.open), o.exceptions)
	}
	return nil
}

// scan returns what the scanner says in a mode of a program, or of a module.
func (o options) scan(ctx context.Context, mode, of string) ([]byte, error) {
	args := []string{mode, "-format=json"}
	if o.db != "" {
		args = append(args, "-db="+o.db)
	}
	cmd := exec.CommandContext(ctx, o.scanner, append(args, of)...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	output, err := cmd.Output()
	stderr := strings.TrimSpace(faults.String())
	switch {
	case err != nil && (strings.Contains(stderr, "fetching vulnerabilities") || strings.HasPrefix(stderr, `Get "`)): // a query says no more
		return nil, fmt.Errorf("%w: %s", errAway, stderr)
	case err != nil:
		return nil, fmt.Errorf("scan %s: %w: %s", of, err, stderr)
	}
	return output, nil
}
