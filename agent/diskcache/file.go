package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errDamaged says that a file's content does not match its hash.
var errDamaged = errors.New("the file is damaged")

// partial is the prefix of the names of files that are being written.
const partial = ".partial-"

// writeFile writes content to path atomically, preceded by its hash.
func writeFile(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, partial) // readable by its owner alone
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	sum := sha256.Sum256(content)
	_, err = file.Write(append(hex.AppendEncode(nil, sum[:]), '\n'))
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// readFile returns the content that writeFile wrote to path.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	recorded, content, found := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(content)
	if !found || string(recorded) != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s: %w", path, errDamaged)
	}
	return content, nil
}

// sweep removes partial files of an earlier run.
func sweep(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), partial) {
			return err
		}
		return os.Remove(path)
	})
}
