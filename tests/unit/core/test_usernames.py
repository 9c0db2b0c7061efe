"""Tests of reading usernames from CSV files and lists."""

import click
import pytest

from core.cli.output.usernames import read_usernames


@pytest.mark.parametrize(
    "content",
    [
        b"ada\nbob\n",
        b"@ada\r\n\r\n  \r\n@Bob\r\n",
        b"\xef\xbb\xbfusername\nada\nbob",
        b"id,Username ,note\n1,ada,x\n2,bob\n",
        b"username;note\nada;x\nbob;y\n",
        b"note\tusername\nx\tada\ny\tbob\n",
        b'username,note\n"ada","said ""hi"",\nthen left"\n"bob",""\n',
        b"https://www.instagram.com/ada/?hl=en\ninstagram.com/bob\n",
        b"handle\nada\nbob",
        "username,é\nada,ü\nbob,ß\n".encode("utf-16"),
        b"Ada,@ada\nBob,@bob\n",
    ],
    ids=[
        "list",
        "@names and empty lines",
        "byte order mark",
        "a column among others",
        "semicolons",
        "tabs",
        "quotes",
        "addresses",
        "another header",
        "UTF-16",
        "no header, names with @",
    ],
)
def test_usernames_are_read_from_common_file_formats(content):
    names = read_usernames(content)

    assert (names.accepted, names.rejected) == (["ada", "bob"], [])


def test_rejected_rows_have_their_line_and_a_reason():
    names = read_usernames(
        b"username\nada\nnot a name\n@ADA\n" + "\N{CYRILLIC SMALL LETTER A}da\n".encode() + b",x\nbob\n"
    )

    assert names.accepted == ["ada", "bob"]
    assert [(row.line, row.reason) for row in names.rejected] == [
        (3, "not a username, nor the address of a profile"),
        (4, "the same as on line 2"),
        (5, "not a username, nor the address of a profile"),
        (6, "not a username, nor the address of a profile"),
    ]
    assert names.rejected[0].text == "not a name"


@pytest.mark.parametrize("first", ["@instagram", "instagram.com/nasa", "instagram_fan", "instagramers"])
def test_a_first_line_that_names_a_profile_is_no_header(first):
    names = read_usernames(f"{first}\nbob\n".encode())

    assert (len(names.accepted), names.header) == (2, None)


def test_header_of_the_column_is_returned():
    assert read_usernames(b"handle\nada").header == "handle"
    assert read_usernames(b"Instagram accounts\nada").header == "Instagram accounts"
    assert read_usernames(b"ada\nhandle").header is None
    assert read_usernames(b"ada\nhandle").accepted == ["ada", "handle"]


@pytest.mark.parametrize(
    ("headers", "column"),
    [
        ("Name,Instagram", 1),
        ("Name,Instagram URL,Username", 2),
        ("Handle,Instagram_Handle", 1),
        ("Profile URL,handle", 1),
        ("Instagram followers,Name,Profile-URL", 2),
        ("url,Instagram: account", 1),
        ("instagram,instagram", 0),
    ],
)
def test_the_best_header_chooses_the_column(headers, column):
    cells = ["other"] * headers.count(",") + ["other"]
    cells[column] = "ada"

    names = read_usernames(f"{headers}\n{','.join(cells)}\n".encode())

    assert (names.accepted, names.header) == (["ada"], headers.split(",")[column])


@pytest.mark.parametrize(
    ("content", "wanted", "header"),
    [
        (b"Name,Instagram,IG main\nbob,eve,ada\n", "ig MAIN", "IG main"),
        (b"Name,Instagram,IG main\nbob,eve,ada\n", "3", "IG main"),
        (b"Name,Company\nada,acme\n", "1", "Name"),
        (b"ada,first\n", "1", None),
    ],
)
def test_named_column_is_read_regardless_of_other_headers(content, wanted, header):
    names = read_usernames(content, wanted)

    assert (names.accepted, names.header) == (["ada"], header)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [(b"Name,City\nada,bern\n", None), (b"Name,City\nada,bern\n", "3"), (b"Name,City\nada,bern\n", "town")],
)
def test_a_file_without_a_fitting_column_is_rejected_with_its_headers(content, wanted):
    with pytest.raises(click.UsageError, match="Name, City") as raised:
        read_usernames(content, wanted)

    assert raised.value.exit_code == 2


@pytest.mark.parametrize("content", [b"", b"\n\n", b"username\n"])
def test_file_without_usernames_gives_an_empty_list(content):
    assert read_usernames(content).accepted == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\xff", "UTF-8"),
        (b"a" * 200_000, "cannot be read"),
        (b"a\n" * 5_000_001, "larger than 10 MB"),
    ],
    ids=["a picture", "an endless cell", "a large file"],
)
def test_content_that_is_not_a_list_is_rejected(content, said):
    with pytest.raises(click.ClickException, match=said):
        read_usernames(content)


def test_control_sequences_are_removed():
    rejected = read_usernames(b"ada\n\x1b[2Jevil\n").rejected

    assert "\x1b" not in rejected[0].text
