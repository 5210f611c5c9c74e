package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// writeBeside writes a file beside its place and moves it there.
func writeBeside(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeOut writes a file as writeBeside does, or prints where no file is named.
func writeOut(cmd *cobra.Command, path string, b []byte) error {
	write := func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
	if path == "" {
		return write(cmd.OutOrStdout())
	}
	return writeBeside(path, write)
}
